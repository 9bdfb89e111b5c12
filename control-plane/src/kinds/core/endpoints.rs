//! Endpoints.

use evenkeel_api::kind::Column;

use crate::kinds::{
    column::{age, shown},
    look::{items, number, text},
    networking::first_three,
};

pub fn columns() -> Vec<Column> {
    vec![
        shown(
            "Endpoints",
            "string",
            "The set of all endpoints is the union of all subsets. Addresses are placed into subsets according to the IPs they share. A single address with multiple ports, some of which are ready and some of which are not (because they come from different containers) will result in the address being displayed in different subsets for the different ports. No address will appear in both Addresses and NotReadyAddresses in the same subset. Sets of addresses and ports that comprise a service.",
            |object, _| {
                let mut shown = Vec::new();
                for subset in items(object, "/subsets") {
                    for address in items(subset, "/addresses") {
                        let ip = text(address, "/ip");
                        match items(subset, "/ports") {
                            [] => shown.push(ip.to_owned()),
                            ports => shown.extend(
                                ports
                                    .iter()
                                    .map(|port| format!("{ip}:{}", number(port, "/port"))),
                            ),
                        }
                    }
                }
                first_three(&shown, "<none>")
            },
        ),
        age(),
    ]
}
