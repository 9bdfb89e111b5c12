use clap::Parser;

use super::*;

const PIN: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn around() -> Surroundings {
    Surroundings {
        in_cluster: false,
        state_home: Some("/var/lib".into()),
    }
}

fn settings(args: &[&str]) -> Result<Settings, String> {
    let base = [
        "evenkeel-agent",
        "--server",
        "https://10.0.0.1:6443",
        "--cluster-name",
        "m1",
        "--kubeconfig",
        "k",
    ];
    let command = Command::try_parse_from(base.iter().chain(args)).map_err(|e| e.to_string())?;
    Settings::new(command.flags, &around()).map_err(|e| e.to_string())
}

#[test]
fn defaults() {
    let settings = settings(&[]).unwrap();
    let timings = settings.timings;
    assert_eq!(timings.status_frequency, Duration::from_secs(10));
    assert_eq!(timings.lease_interval, Duration::from_secs(10));
    assert_eq!(settings.health_bind.to_string(), "127.0.0.1:10357");
    assert!(
        matches!(settings.identity, IdentityPlace::Directory(d) if d == std::path::Path::new("/var/lib/evenkeel-agent/m1"))
    );
}

#[test]
fn refusals_name_the_flag_and_the_reason() {
    let table: &[(&[&str], &str, &str)] = &[
        (
            &["--cluster-status-update-frequency", "0s"],
            "--cluster-status-update-frequency",
            "more than zero",
        ),
        (
            &["--cluster-failure-threshold=-5s"],
            "--cluster-failure-threshold",
            "negative",
        ),
        (
            &["--probe-timeout", "10s"],
            "--probe-timeout",
            "less than --cluster-status-update-frequency (10s)",
        ),
        (
            &["--cluster-lease-renew-interval-fraction", "1"],
            "--cluster-lease-renew-interval-fraction",
            "less than 1",
        ),
        (
            &["--cluster-lease-renew-interval-fraction", "nan"],
            "--cluster-lease-renew-interval-fraction",
            "more than 0",
        ),
        (
            &["--cluster-lease-duration", "4m"],
            "--cluster-lease-renew-interval-fraction",
            "after 40s",
        ),
        (
            &["--cluster-lease-duration", "1500ms"],
            "--cluster-lease-duration",
            "whole seconds",
        ),
        (&["--ca-pin", "sha256:12"], "--ca-pin", "64 hex digits"),
        (&["--token", "hello"], "--token", "6 characters"),
        (
            &["--ca-pin", PIN, "--ca-file", "x"],
            "--ca-file",
            "cannot be used with",
        ),
        (
            &["--cluster-region", "a b"],
            "--cluster-region",
            "alphanumeric",
        ),
        (&["--log-level", "=="], "--log-level", "invalid"),
        (
            &["--identity-secret", "x"],
            "--identity-secret",
            "in the member",
        ),
        (&["--health-bind", "nowhere"], "--health-bind", "invalid"),
    ];
    for (args, flag, reason) in table {
        let error = settings(args).expect_err(&format!("{args:?} was taken"));
        assert!(
            error.contains(flag) && error.contains(reason),
            "{args:?}: {error}"
        );
    }
}

#[test]
fn what_is_missing_is_named() {
    let parse = |args: &[&str]| {
        let command = Command::try_parse_from(std::iter::once(&"x").chain(args)).unwrap();
        Settings::new(command.flags, &around())
            .expect_err("was taken")
            .to_string()
    };
    assert!(parse(&[]).contains("--server is missing"));
    assert!(parse(&["--server", "https://a"]).contains("--cluster-name is missing"));
    assert!(
        parse(&["--server", "https://a", "--cluster-name", "m"])
            .contains("--kubeconfig is missing")
    );
    assert!(parse(&["--server", "http://a", "--cluster-name", "m"]).contains("https://"));
}

#[test]
fn a_token_is_never_repeated() {
    let error = settings(&["--token", "SECRETSECRET"]).unwrap_err();
    assert!(!error.contains("SECRETSECRET"), "{error}");
    let token = TokenSource::Literal("abcdef.0123456789abcdef".into());
    assert!(!format!("{token:?}").contains("0123"));
}

#[test]
fn file_holds_the_same_names_and_flags_win() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.yaml");
    std::fs::write(
        &path,
        "server: [https://file:1]\ncluster-name: from-file\nprobe-timeout: 2s\ntoken-file: /t\n",
    )
    .unwrap();
    let file = read_file(&path).unwrap();
    let command = Command::try_parse_from([
        "x",
        "--cluster-name",
        "from-flag",
        "--kubeconfig",
        "k",
        "--token",
        "abcdef.0123456789abcdef",
    ])
    .unwrap();
    let settings = Settings::new(command.flags.over(file), &around()).unwrap();
    assert_eq!(settings.cluster, "from-flag");
    assert_eq!(settings.servers[0].host(), Some("file"));
    assert_eq!(settings.timings.probe_timeout, Duration::from_secs(2));
    assert!(matches!(settings.token, Some(TokenSource::Literal(_))));
}

#[test]
fn unknown_keys_of_the_file_are_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent.yaml");
    std::fs::write(&path, "cluster-nam: m1\n").unwrap();
    let error = read_file(&path).unwrap_err().to_string();
    assert!(error.contains("cluster-nam"), "{error}");
    std::fs::write(&path, "# nothing yet\n").unwrap();
    assert!(read_file(&path).unwrap().cluster_name.is_none());
}

#[test]
fn every_flag_has_its_variable_and_its_key() {
    use clap::CommandFactory;
    for argument in Command::command().get_arguments() {
        let Some(long) = argument.get_long() else {
            continue;
        };
        let variable = format!("EVENKEEL_AGENT_{}", long.replace('-', "_").to_uppercase());
        assert_eq!(
            argument.get_env().and_then(|name| name.to_str()),
            Some(variable.as_str())
        );
        if long == "config" {
            continue;
        }
        // A key that the file does not know is reported as such; a known one at most as ill-typed.
        let error = serde_saphyr::from_str::<Flags>(&format!("{long}: {{}}\n"))
            .expect_err("a map is no value of any flag");
        assert!(
            !error.to_string().contains("unknown field"),
            "{long}: {error}"
        );
    }
}
