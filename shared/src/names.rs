//! Names of objects that are derived from others, the reference's exactly, so that its agents and tools find them.

/// The namespace of a member's Works is this and the cluster's name.
pub const EXECUTION_NAMESPACE_PREFIX: &str = "karmada-es-";
/// Where leases and members' Secrets are.
pub const CLUSTER_NAMESPACE: &str = "karmada-cluster";
/// Where the reference's own components are; never propagated.
pub const SYSTEM_NAMESPACE: &str = "karmada-system";

/// The namespace of a member's Works.
pub fn execution_namespace(cluster: &str) -> String {
    format!("{EXECUTION_NAMESPACE_PREFIX}{cluster}")
}

/// The member whose Works are in this namespace.
pub fn cluster_of_namespace(namespace: &str) -> Option<&str> {
    namespace
        .strip_prefix(EXECUTION_NAMESPACE_PREFIX)
        .filter(|cluster| !cluster.is_empty())
}

/// Whether templates in this namespace are never propagated.
pub fn is_reserved_namespace(namespace: &str) -> bool {
    namespace == SYSTEM_NAMESPACE
        || namespace == CLUSTER_NAMESPACE
        || namespace.starts_with(EXECUTION_NAMESPACE_PREFIX)
}

/// The name of the Work of a template; `namespace` is empty for cluster-scoped ones.
pub fn work_name(kind: &str, name: &str, namespace: &str) -> String {
    let name = plain(name);
    let key = if namespace.is_empty() {
        format!("{name}-{kind}")
    } else {
        format!("{namespace}-{name}-{kind}")
    };
    format!("{name}-{}", digest(&key.to_lowercase()))
}

/// The name of the binding of a template.
pub fn binding_name(kind: &str, name: &str) -> String {
    plain(&format!("{name}-{kind}"))
}

/// A short name for a binding that fits in a label's value; `namespace` is empty for cluster-scoped ones.
pub fn binding_reference_key(namespace: &str, name: &str) -> String {
    if namespace.is_empty() {
        digest(name)
    } else {
        digest(&format!("{namespace}/{name}"))
    }
}

/// RBAC names hold colons and capitals, which most names may not.
fn plain(name: &str) -> String {
    name.replace(':', ".").to_lowercase()
}

/// The 32-bit FNV-1a hash.
pub fn fnv1a_32(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

/// FNV-1a (32 bits) in decimal, each digit written as a letter that makes no words.
fn digest(key: &str) -> String {
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    fnv1a_32(key.as_bytes())
        .to_string()
        .bytes()
        .map(|digit| char::from(ALPHABET[usize::from(digit) % ALPHABET.len()]))
        .collect()
}
