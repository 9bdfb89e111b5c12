//! `policy.karmada.io/v1alpha1` override policies: how a template differs from member to member.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    placement::ClusterAffinity,
    policy::ResourceSelector,
    wire::{object, wire, words},
};

object! {
    /// Overrides templates of its own namespace.
    OverridePolicy, "overridepolicies" in "policy.karmada.io" / "v1alpha1", NamespaceResourceScope, OverrideSpec
}

object! {
    /// Overrides templates of any namespace, before the namespaced ones do.
    ClusterOverridePolicy, "clusteroverridepolicies" in "policy.karmada.io" / "v1alpha1", ClusterResourceScope,
    OverrideSpec
}

words! {
    /// What is done at a place.
    pub enum OverriderOperator {
        /// Something is put there.
        Add = "add",
        /// What is there goes.
        Remove = "remove",
        /// What is there becomes something else.
        Replace = "replace",
    }

    /// A part of an image's name: `registry/repository:tag`.
    pub enum ImageComponent {
        /// `registry.example.com:5000`
        Registry = "Registry",
        /// `team/app`
        Repository = "Repository",
        /// `v1`, or `@sha256:…`
        Tag = "Tag",
    }
}

wire! {
    /// What is overridden, where, and how.
    pub struct OverrideSpec {
        /// Which templates; empty: all.
        pub resource_selectors: Vec<ResourceSelector>,
        /// In order; each for the clusters that it selects.
        pub override_rules: Vec<RuleWithCluster>,
        /// Deprecated: the one rule's clusters.
        pub target_cluster: Option<ClusterAffinity>,
        /// Deprecated: the one rule's overriders.
        pub overriders: Overriders,
    }

    /// Overriders for some clusters.
    pub struct RuleWithCluster {
        /// Which ones; none given: all.
        pub target_cluster: Option<ClusterAffinity>,
        /// How.
        pub overriders: Overriders,
    }

    /// Ways to override, applied in the order image, command, args, labels, annotations, fields, plaintext.
    pub struct Overriders {
        /// JSON patch operations.
        pub plaintext: Vec<PlaintextOverrider>,
        /// Parts of image names.
        pub image_overrider: Vec<ImageOverrider>,
        /// Commands of containers.
        pub command_overrider: Vec<CommandArgsOverrider>,
        /// Arguments of containers.
        pub args_overrider: Vec<CommandArgsOverrider>,
        /// Labels.
        pub labels_overrider: Vec<LabelAnnotationOverrider>,
        /// Annotations.
        pub annotations_overrider: Vec<LabelAnnotationOverrider>,
        /// Text fields that hold JSON or YAML.
        pub field_overrider: Vec<FieldOverrider>,
    }

    /// One JSON patch operation.
    pub struct PlaintextOverrider {
        /// A JSON pointer.
        pub path: String,
        /// What is done there.
        pub operator: Option<OverriderOperator>,
        /// With what.
        pub value: Option<Value>,
    }

    /// Changes a part of image names.
    pub struct ImageOverrider {
        /// Which image; none given: those of the containers of the kinds that have some.
        pub predicate: Option<ImagePredicate>,
        /// Which part.
        pub component: Option<ImageComponent>,
        /// What is done to it.
        pub operator: Option<OverriderOperator>,
        /// With what.
        pub value: String,
    }

    /// Names an image.
    pub struct ImagePredicate {
        /// A JSON pointer.
        pub path: String,
    }

    /// Changes the command or the arguments of a container.
    pub struct CommandArgsOverrider {
        /// Which container.
        pub container_name: String,
        /// What is done.
        pub operator: Option<OverriderOperator>,
        /// The words added or removed.
        pub value: Vec<String>,
    }

    /// Changes labels or annotations.
    pub struct LabelAnnotationOverrider {
        /// What is done.
        pub operator: Option<OverriderOperator>,
        /// With which keys and values.
        pub value: BTreeMap<String, String>,
    }

    /// Changes a document inside a text field: `json` or `yaml`, not both.
    pub struct FieldOverrider {
        /// A JSON pointer to the text field.
        pub field_path: String,
        /// Operations on JSON.
        pub json: Vec<DocumentPatchOperation>,
        /// Operations on YAML.
        pub yaml: Vec<DocumentPatchOperation>,
    }

    /// One operation inside a document.
    pub struct DocumentPatchOperation {
        /// A JSON pointer within the document.
        pub sub_path: String,
        /// What is done there.
        pub operator: Option<OverriderOperator>,
        /// With what.
        pub value: Option<Value>,
    }
}
