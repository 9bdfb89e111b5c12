//! Label and field selectors in their text form, as queries carry them: parsing, with the reference parser's texts for
//! what is wrong, and matching.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;

use crate::{field::FieldError, syntax};

/// A selector that does not parse. The text is the reference server's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(
    /// What is wrong.
    pub String,
);

/// What is asked of one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The label is there.
    Exists,
    /// It is not.
    DoesNotExist,
    /// It has one of these values.
    In(BTreeSet<String>),
    /// Holds also where the label is absent.
    NotIn(BTreeSet<String>),
    /// Labels that are no whole number do not match.
    GreaterThan(i64),
    /// Likewise.
    LessThan(i64),
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Of the label.
    pub key: String,
    /// What is asked of its value.
    pub operator: Operator,
}

impl Requirement {
    /// Whether a label with this value, or its absence, is what is asked for.
    pub fn matches(&self, value: Option<&str>) -> bool {
        let number = || value.and_then(|value| value.parse::<i64>().ok());
        match &self.operator {
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::In(values) => value.is_some_and(|value| values.contains(value)),
            Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
            Operator::GreaterThan(bound) => number().is_some_and(|number| number > *bound),
            Operator::LessThan(bound) => number().is_some_and(|number| number < *bound),
        }
    }
}

/// Conditions on labels that must all hold. The empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// In the order of the text.
    pub requirements: Vec<Requirement>,
}

impl LabelSelector {
    /// Parses `a=b,c in (d,e),!f`.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        Parser {
            tokens: tokens(text),
            at: 0,
        }
        .selector()
        .map_err(SelectorError)
    }

    /// The selector that an object holds. An empty one matches everything.
    pub fn of(selector: &meta::LabelSelector) -> Result<Self, SelectorError> {
        let labels = selector.match_labels.iter().flatten();
        let mut requirements = labels
            .map(|(key, value)| Requirement {
                key: key.clone(),
                operator: Operator::In(BTreeSet::from([value.clone()])),
            })
            .collect::<Vec<_>>();
        for expression in selector.match_expressions.iter().flatten() {
            let values = || expression.values.iter().flatten().cloned().collect();
            let operator = match expression.operator.as_str() {
                "In" => Operator::In(values()),
                "NotIn" => Operator::NotIn(values()),
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => {
                    let text = format!("\"{other}\" is not a valid label selector operator");
                    return Err(SelectorError(text));
                }
            };
            requirements.push(Requirement {
                key: expression.key.clone(),
                operator,
            });
        }
        Ok(Self { requirements })
    }

    /// Whether these labels fulfil every condition.
    pub fn matches_labels(&self, labels: &BTreeMap<String, String>) -> bool {
        self.matches(|key| labels.get(key).map(String::as_str))
    }

    /// Whether it matches everything.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether labels, looked up by key, fulfil every condition.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        self.requirements
            .iter()
            .all(|requirement| requirement.matches(label(&requirement.key)))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    /// One of `=`, `==`, `!=`, `!`, `(`, `)`, `,`, `<`, `>`.
    Symbol(&'a str),
    End,
}

impl Token<'_> {
    fn text(&self) -> &str {
        match self {
            Self::Word(text) | Self::Symbol(text) => text,
            Self::End => "",
        }
    }
}

fn tokens(text: &str) -> Vec<Token<'_>> {
    let special = |byte: u8| b"=!(),<>".contains(&byte);
    let bytes = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at].is_ascii_whitespace() {
            at += 1;
        } else if special(bytes[at]) {
            let pair = matches!(&bytes[at..], [b'=' | b'!', b'=', ..]);
            let end = at + if pair { 2 } else { 1 };
            tokens.push(Token::Symbol(&text[at..end]));
            at = end;
        } else {
            let length = bytes[at..]
                .iter()
                .position(|byte| special(*byte) || byte.is_ascii_whitespace())
                .unwrap_or(bytes.len() - at);
            tokens.push(Token::Word(&text[at..at + length]));
            at += length;
        }
    }
    tokens
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.at).cloned().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn selector(mut self) -> Result<LabelSelector, String> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                Token::End => return Ok(LabelSelector { requirements }),
                Token::Word(_) | Token::Symbol("!") => {}
                other @ Token::Symbol(_) => {
                    return Err(format!(
                        "found '{}', expected: !, identifier, or 'end of string'",
                        other.text()
                    ));
                }
            }
            let requirement = self
                .requirement()
                .map_err(|why| format!("unable to parse requirement: {why}"))?;
            requirements.push(requirement);
            match self.next() {
                Token::End => return Ok(LabelSelector { requirements }),
                Token::Symbol(",") => {
                    let after = self.peek();
                    if !matches!(after, Token::Word(_) | Token::Symbol("!")) {
                        return Err(format!(
                            "found '{}', expected: identifier after ','",
                            after.text()
                        ));
                    }
                }
                other => {
                    return Err(format!(
                        "found '{}', expected: ',' or 'end of string'",
                        other.text()
                    ));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, String> {
        let negated = self.peek() == Token::Symbol("!");
        if negated {
            self.next();
        }
        let key = match self.next() {
            Token::Word(key) => key,
            other => return Err(format!("found '{}', expected: identifier", other.text())),
        };
        let wrong = syntax::qualified_name(key);
        if !wrong.is_empty() {
            return Err(FieldError::invalid("<nil>", &key.into(), &wrong.join("; ")).to_string());
        }
        let requirement = |operator| Requirement {
            key: key.to_owned(),
            operator,
        };
        if negated {
            return Ok(requirement(Operator::DoesNotExist));
        }
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok(requirement(Operator::Exists));
        }
        let operator = match self.next() {
            Token::Word("in") => Operator::In(self.values(key)?),
            Token::Word("notin") => Operator::NotIn(self.values(key)?),
            Token::Symbol("=" | "==") => Operator::In(self.exact_value(key)?),
            Token::Symbol("!=") => Operator::NotIn(self.exact_value(key)?),
            Token::Symbol(">") => Operator::GreaterThan(self.number(key)?),
            Token::Symbol("<") => Operator::LessThan(self.number(key)?),
            other => {
                return Err(format!(
                    "found '{}', expected: in, notin, =, ==, !=, gt, lt",
                    other.text()
                ));
            }
        };
        Ok(requirement(operator))
    }

    fn exact_value(&mut self, key: &str) -> Result<BTreeSet<String>, String> {
        let value = match self.peek() {
            Token::End | Token::Symbol(",") => "",
            Token::Word(word) => {
                self.next();
                word
            }
            other @ Token::Symbol(_) => {
                return Err(format!("found '{}', expected: identifier", other.text()));
            }
        };
        checked(key, BTreeSet::from([value.to_owned()]))
    }

    fn number(&mut self, key: &str) -> Result<i64, String> {
        let values = self.exact_value(key)?;
        let value = values.first().map(String::as_str).unwrap_or_default();
        value.parse().map_err(|_| {
            FieldError::invalid(
                "values[0]",
                &value.into(),
                "for 'Gt', 'Lt' operators, the value must be an integer",
            )
            .to_string()
        })
    }

    fn values(&mut self, key: &str) -> Result<BTreeSet<String>, String> {
        let open = self.next();
        if open != Token::Symbol("(") {
            return Err(format!("found '{}' expected: '('", open.text()));
        }
        match self.peek() {
            Token::Symbol(")") => {
                self.next();
                return checked(key, BTreeSet::from([String::new()]));
            }
            Token::Word(_) | Token::Symbol(",") => {}
            other => {
                return Err(format!(
                    "found '{}', expected: ',', ')' or identifier",
                    other.text()
                ));
            }
        }
        let mut values = BTreeSet::new();
        loop {
            match self.next() {
                Token::Word(word) => {
                    values.insert(word.to_owned());
                    match self.peek() {
                        Token::Symbol(",") => {}
                        Token::Symbol(")") => break,
                        other => {
                            return Err(format!("found '{}', expected: ',' or ')'", other.text()));
                        }
                    }
                }
                Token::Symbol(",") => {
                    if values.is_empty() {
                        values.insert(String::new());
                    }
                    match self.peek() {
                        Token::Symbol(")") => {
                            values.insert(String::new());
                            break;
                        }
                        Token::Symbol(",") => {
                            self.next();
                            values.insert(String::new());
                        }
                        _ => {}
                    }
                }
                other => {
                    return Err(format!(
                        "found '{}', expected: ',', or identifier",
                        other.text()
                    ));
                }
            }
        }
        self.next();
        checked(key, values)
    }
}

fn checked(key: &str, values: BTreeSet<String>) -> Result<BTreeSet<String>, String> {
    for (index, value) in values.iter().enumerate() {
        let wrong = syntax::label_value(value);
        if !wrong.is_empty() {
            return Err(FieldError::invalid(
                format!("values[{index}][{key}]"),
                &value.as_str().into(),
                &wrong.join("; "),
            )
            .to_string());
        }
    }
    Ok(values)
}

/// One condition on one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldTerm {
    /// Dotted, as it was written (`metadata.name`).
    pub path: String,
    /// Without escapes.
    pub value: String,
    /// `false`: `!=`.
    pub equal: bool,
}

/// Conditions on fields that must all hold. The empty selector matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    /// In the order of the text.
    pub terms: Vec<FieldTerm>,
}

impl FieldSelector {
    /// Parses `metadata.name=a,status.phase!=b`. A backslash escapes `,`, `=` and itself in a value.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut terms = Vec::new();
        for part in split_terms(text) {
            if part.is_empty() {
                continue;
            }
            let (path, value, equal) = split_term(part).ok_or_else(|| {
                SelectorError(format!(
                    "invalid selector: '{text}'; can't understand '{part}'"
                ))
            })?;
            terms.push(FieldTerm {
                path: path.to_owned(),
                value: unescape(value)?,
                equal,
            });
        }
        Ok(Self { terms })
    }

    /// Whether it matches everything.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether fields, looked up by path, fulfil every condition. An absent field is the empty text.
    pub fn matches<'a>(&self, field: impl Fn(&str) -> &'a str) -> bool {
        self.terms
            .iter()
            .all(|term| (field(&term.path) == term.value) == term.equal)
    }

    /// The value that a field must have to match, when there is one.
    pub fn required(&self, path: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|term| term.equal && term.path == path)
            .map(|term| term.value.as_str())
    }
}

fn split_terms(text: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b',' => {
                terms.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&text[start..]);
    terms
}

fn split_term(term: &str) -> Option<(&str, &str, bool)> {
    for (at, _) in term.char_indices() {
        let rest = &term[at..];
        for (operator, equal) in [("!=", false), ("==", true), ("=", true)] {
            if let Some(value) = rest.strip_prefix(operator) {
                return Some((&term[..at], value, equal));
            }
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, SelectorError> {
    let mut plain = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => plain.push(escaped),
                other => {
                    let sequence = other.map_or_else(|| "\\".into(), |other| format!("\\{other}"));
                    return Err(SelectorError(format!(
                        "invalid field selector: invalid escape sequence: {sequence}"
                    )));
                }
            },
            ',' | '=' => {
                return Err(SelectorError(format!(
                    "invalid field selector: unescaped character in value: {letter}"
                )));
            }
            letter => plain.push(letter),
        }
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn label_selectors_match() {
        let labels = [("n", "3"), ("par", "odd"), ("big", "")];
        let label = |key: &str| {
            labels
                .iter()
                .find(|(name, _)| *name == key)
                .map(|(_, value)| *value)
        };
        for (text, want) in [
            ("", true),
            ("n=3", true),
            ("n==3,par=odd", true),
            ("n!=3", false),
            ("n in (1, 3)", true),
            ("n notin (1,2)", true),
            ("absent notin (x)", true),
            ("absent!=x", true),
            ("big", true),
            ("big=", true),
            ("!big", false),
            ("! absent", true),
            ("n in ()", false),
            ("big in ()", true),
            ("n>2", true),
            ("n<3", false),
            ("par>1", false),
            ("n=1,n=3", false),
            ("big in (b,,c)", true),
            ("in in (a)", false),
        ] {
            let selector = LabelSelector::parse(text).unwrap();
            assert_eq!(selector.matches(label), want, "{text}");
        }
    }

    #[test]
    fn a_selector_in_an_object_is_read() {
        let read = |json| LabelSelector::of(&serde_json::from_value(json).unwrap());
        let selector = read(serde_json::json!({
            "matchLabels": {"a": "1"},
            "matchExpressions": [
                {"key": "b", "operator": "NotIn", "values": ["2"]},
                {"key": "c", "operator": "Exists"},
            ],
        }))
        .unwrap();
        assert_eq!(selector, LabelSelector::parse("a=1,b!=2,c").unwrap());
        let labels = |pairs: &[(&str, &str)]| {
            let owned = pairs
                .iter()
                .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
            owned.collect::<BTreeMap<_, _>>()
        };
        assert!(selector.matches_labels(&labels(&[("a", "1"), ("c", "x")])));
        assert!(!selector.matches_labels(&labels(&[("a", "1"), ("b", "2"), ("c", "x")])));
        let odd = read(serde_json::json!({"matchExpressions": [{"key": "a", "operator": "Gt"}]}));
        assert_eq!(
            odd.unwrap_err().0,
            "\"Gt\" is not a valid label selector operator"
        );
    }

    #[test]
    fn label_selectors_that_do_not_parse() {
        for (text, want) in [
            ("a=b=c", "found '=', expected: ',' or 'end of string'"),
            (
                "a in b",
                "unable to parse requirement: found 'b' expected: '('",
            ),
            (
                "=x",
                "found '=', expected: !, identifier, or 'end of string'",
            ),
            (
                "a!",
                "unable to parse requirement: found '!', expected: in, notin, =, ==, !=, gt, lt",
            ),
            (
                "a in (b",
                "unable to parse requirement: found '', expected: ',' or ')'",
            ),
            (
                "!",
                "unable to parse requirement: found '', expected: identifier",
            ),
            (
                "a b",
                "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
            ),
            (
                "a=bad value!",
                "found 'value', expected: ',' or 'end of string'",
            ),
            (
                "a>x",
                "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
            ),
            (
                "(a)",
                "found '(', expected: !, identifier, or 'end of string'",
            ),
            (
                ",",
                "found ',', expected: !, identifier, or 'end of string'",
            ),
            ("a,,b", "found ',', expected: identifier after ','"),
            (
                "par in (even,odd),",
                "found '', expected: identifier after ','",
            ),
            (
                "a notin",
                "unable to parse requirement: found '' expected: '('",
            ),
        ] {
            assert_eq!(LabelSelector::parse(text).unwrap_err().0, want, "{text}");
        }
        let long = format!("a=={}", "x".repeat(64));
        assert!(
            LabelSelector::parse(&long)
                .unwrap_err()
                .0
                .ends_with("must be no more than 63 bytes")
        );
    }

    #[test]
    fn field_selectors() {
        let field = |path: &str| match path {
            "metadata.name" => "a,b",
            "status.phase" => "Ready",
            _ => "",
        };
        for (text, want) in [
            ("", true),
            ("status.phase=Ready", true),
            ("status.phase==Ready,metadata.name=a\\,b", true),
            ("status.phase!=Ready", false),
            ("spec.absent=", true),
            (",status.phase=Ready,", true),
        ] {
            let selector = FieldSelector::parse(text).unwrap();
            assert_eq!(selector.matches(field), want, "{text}");
        }
        for (text, want) in [
            (
                "spec.color",
                "invalid selector: 'spec.color'; can't understand 'spec.color'",
            ),
            (
                "a=\\x",
                "invalid field selector: invalid escape sequence: \\x",
            ),
        ] {
            assert_eq!(FieldSelector::parse(text).unwrap_err().0, want, "{text}");
        }
    }

    proptest! {
        /// Any text parses or is refused with a text.
        #[test]
        fn never_panics(text in "[a-c=!<>(), in\\\\.\\PC]{0,40}") {
            if let Err(SelectorError(why)) = LabelSelector::parse(&text) {
                prop_assert!(!why.is_empty());
            }
            if let Err(SelectorError(why)) = FieldSelector::parse(&text) {
                prop_assert!(!why.is_empty());
            }
        }
    }
}
