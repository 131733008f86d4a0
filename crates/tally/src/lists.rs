//! [`Lists`]: many short lists, one after the other in one place.

/// Lists of things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lists<T> {
    items: Vec<T>,
    ends: Vec<usize>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self { items: Vec::new(), ends: Vec::new() }
    }
}

impl<T: Copy> Lists<T> {
    pub(crate) fn clear(&mut self) {
        self.items.clear();
        self.ends.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// Appends a list.
    #[inline]
    pub(crate) fn push(&mut self, list: impl IntoIterator<Item = T>) {
        self.items.extend(list);
        self.ends.push(self.items.len());
    }

    /// Appends a list that lies somewhere.
    #[inline]
    pub(crate) fn push_slice(&mut self, list: &[T]) {
        self.items.extend_from_slice(list);
        self.ends.push(self.items.len());
    }

    /// Appends several lists, given where each of them ends.
    #[inline]
    pub(crate) fn append(&mut self, items: &[T], ends: &[u32]) {
        let start = self.items.len();
        self.items.extend_from_slice(items);
        self.ends.extend(ends.iter().map(|&end| start + end as usize));
    }

    pub(crate) fn get(&self, at: usize) -> &[T] {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.items[start..self.ends[at]]
    }

    #[inline]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[T]> {
        let mut start = 0;
        self.ends.iter().map(move |&end| {
            let list = &self.items[start..end];
            start = end;
            list
        })
    }
}
