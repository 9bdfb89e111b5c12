//! When the counts of a dimension are, but for a common shift, what they were at a checkpoint.

/// How far each live domain of a dimension has come since a checkpoint. Every operation but [`Self::moves`] is O(1).
#[derive(Debug, Default)]
pub(super) struct Recurrence {
    /// By domain: the checkpoint that `moves` counts from. An older one stands for no moves.
    since: Vec<u32>,
    moves: Vec<i64>,
    checkpoint: u32,
    /// The most that a domain has moved, and how many domains have moved so far.
    most: i64,
    at_most: usize,
    live: usize,
}

impl Recurrence {
    pub fn new(domains: usize) -> Self {
        Self {
            since: vec![0; domains],
            moves: vec![0; domains],
            ..Self::default()
        }
    }

    /// One more domain is live.
    pub fn join(&mut self) {
        self.live += 1;
    }

    /// One domain is live no more. A restart has to follow.
    pub fn part(&mut self) {
        self.live -= 1;
    }

    /// Sets a new checkpoint.
    pub fn restart(&mut self) {
        self.checkpoint += 1;
        self.most = 0;
        self.at_most = self.live;
    }

    /// A live domain got, or lost, so many replicas.
    pub fn moved(&mut self, domain: u32, replicas: i64) {
        let at = domain as usize;
        if self.since[at] != self.checkpoint {
            self.since[at] = self.checkpoint;
            self.moves[at] = 0;
        }
        self.moves[at] += replicas;
        match self.moves[at].cmp(&self.most) {
            std::cmp::Ordering::Greater => {
                self.most = self.moves[at];
                self.at_most = 1;
            }
            std::cmp::Ordering::Equal => self.at_most += 1,
            std::cmp::Ordering::Less => {}
        }
    }

    /// How far all live domains have moved, if all have moved as far.
    pub fn common(&self) -> Option<i64> {
        (self.at_most == self.live).then_some(self.most)
    }

    /// How far one domain has moved.
    pub fn of(&self, domain: u32) -> i64 {
        let at = domain as usize;
        if self.since[at] == self.checkpoint {
            self.moves[at]
        } else {
            0
        }
    }
}
