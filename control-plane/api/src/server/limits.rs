//! What a client may take of the server.

use std::time::Duration;

/// Sizes, counts and times that bound every client. The defaults serve a fleet of some ten thousand agents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections; further ones are closed at once.
    pub max_connections: usize,
    /// Streams of one HTTP/2 connection at a time.
    pub max_streams: u32,
    /// Requests that are being handled at a time, watches aside; further ones are answered 429.
    pub max_in_flight: usize,
    /// Open watches; further ones are answered 429.
    pub max_watches: usize,
    /// The body of a request, in bytes; more is answered 413.
    pub max_body: usize,
    /// Path and query of a request, in bytes; more is answered 414.
    pub max_url: usize,
    /// The headers of a request, in bytes.
    pub max_headers: u32,
    /// For a TLS handshake.
    pub handshake_timeout: Duration,
    /// For the head of an HTTP/1.1 request, and how long such a connection may be idle.
    pub header_timeout: Duration,
    /// For a request, its body included; watches aside.
    pub request_timeout: Duration,
    /// How often an idle HTTP/2 connection is asked whether it still is there.
    pub ping_interval: Duration,
    /// How long it may take to answer.
    pub ping_timeout: Duration,
    /// How long requests may go on after the server was told to stop.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 50_000,
            max_streams: 250,
            max_in_flight: 1_000,
            max_watches: 200_000,
            max_body: 3 * 1024 * 1024,
            max_url: 8 * 1024,
            max_headers: 32 * 1024,
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_mins(1),
            request_timeout: Duration::from_mins(1),
            ping_interval: Duration::from_secs(30),
            ping_timeout: Duration::from_secs(20),
            drain_timeout: Duration::from_secs(20),
        }
    }
}
