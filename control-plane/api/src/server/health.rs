//! `/healthz`, `/livez`, `/readyz`, each with `?verbose`, `?exclude=` and one path per check.

use std::fmt::Write as _;

use http::StatusCode;

use super::Server;
use crate::request::query::Query;

/// An answer in plain text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Health {
    pub code: StatusCode,
    pub text: String,
}

type Outcome<'a> = (&'a str, Result<(), String>);

impl Server {
    /// Answers a health path; `None` when it names no check.
    pub(crate) fn health(&self, path: &str, query: &Query) -> Option<Health> {
        let path = path.trim_matches('/');
        let (endpoint, name) = match path.split_once('/') {
            Some((endpoint, name)) => (endpoint, Some(name)),
            None => (path, None),
        };
        let mut checks = self.checks(endpoint);
        if let Some(name) = name {
            let (_, outcome) = checks.into_iter().find(|(found, _)| *found == name)?;
            return Some(match outcome {
                Ok(()) => Health {
                    code: StatusCode::OK,
                    text: "ok".into(),
                },
                Err(why) => Health {
                    code: StatusCode::INTERNAL_SERVER_ERROR,
                    text: format!("internal server error: {why}\n"),
                },
            });
        }
        let excluded = query.all("exclude").collect::<Vec<_>>();
        checks.retain(|(name, _)| !excluded.contains(name));
        Some(report(endpoint, &checks, query.get("verbose").is_some()))
    }

    /// Being alive is answering at all; being ready is more.
    fn checks(&self, endpoint: &str) -> Vec<Outcome<'_>> {
        let mut checks = vec![("ping", Ok(()))];
        if endpoint != "livez" {
            checks.extend(
                self.readiness
                    .iter()
                    .map(|(name, check)| (name.as_str(), check())),
            );
            let running = if self.ending.is_cancelled() {
                Err("the server is shutting down".to_owned())
            } else {
                Ok(())
            };
            checks.push(("shutdown", running));
        }
        checks
    }
}

fn report(endpoint: &str, checks: &[Outcome<'_>], verbose: bool) -> Health {
    let healthy = checks.iter().all(|(_, outcome)| outcome.is_ok());
    if healthy && !verbose {
        return Health {
            code: StatusCode::OK,
            text: "ok".into(),
        };
    }
    let mut text = String::new();
    for (name, outcome) in checks {
        let _ = match outcome {
            Ok(()) => writeln!(text, "[+]{name} ok"),
            Err(why) => writeln!(text, "[-]{name} failed: {why}"),
        };
    }
    let (code, verdict) = if healthy {
        (StatusCode::OK, "passed")
    } else {
        (StatusCode::INTERNAL_SERVER_ERROR, "failed")
    };
    let _ = writeln!(text, "{endpoint} check {verdict}");
    Health { code, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports() {
        let bad = || ("store", Err("closed".to_owned()));
        assert_eq!(report("readyz", &[("ping", Ok(()))], false).text, "ok");
        assert_eq!(
            report("livez", &[("ping", Ok(()))], true).text,
            "[+]ping ok\nlivez check passed\n"
        );
        let health = report("readyz", &[("ping", Ok(())), bad()], false);
        assert_eq!(health.code, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(
            health.text,
            "[+]ping ok\n[-]store failed: closed\nreadyz check failed\n"
        );
    }
}
