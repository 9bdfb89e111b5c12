use evenkeel_shared::taint::{self, Eviction};
use k8s_openapi::api::core::v1::{Taint, Toleration};
use serde_json::json;

#[test]
fn tolerations_are_judged_as_the_reference_does() {
    super::check("tolerations", |input| {
        let taints: Vec<Taint> =
            serde_json::from_value(input["taints"].clone()).expect("taints decode");
        let tolerations: Vec<Toleration> =
            serde_json::from_value(input["tolerations"].clone()).expect("tolerations decode");
        let now = input["now"]
            .as_str()
            .and_then(|now| now.parse().ok())
            .expect("now is a time");
        let target = input["alreadyTarget"].as_bool().unwrap_or_default();
        let blocking = taint::first_untolerated(&taints, &tolerations).filter(|_| !target);
        let mut answer = json!({"schedulable": blocking.is_none()});
        if let Some(blocking) = blocking {
            let value = match blocking.value.as_deref() {
                None | Some("") => String::new(),
                Some(value) => format!("={value}"),
            };
            answer["reason"] = json!(format!(
                "cluster(s) had untolerated taint {{{}{value}:{}}}",
                blocking.key, blocking.effect
            ));
        }
        answer["eviction"] = match taint::eviction(&taints, &tolerations, now) {
            Eviction::Now => json!({"action": "now"}),
            Eviction::After(seconds) => json!({"action": "after", "seconds": seconds}),
            Eviction::Never => json!({"action": "never"}),
        };
        answer
    });
}
