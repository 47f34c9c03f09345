// SPDX-License-Identifier: GPL-2.0
//! Who an event is for: an index, and a generation that tells an entry from the one before at its place.

/// Whose descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Side {
    Node = 0,
    Host = 1,
}

impl Side {
    pub fn other(self) -> Side {
        match self {
            Side::Node => Side::Host,
            Side::Host => Side::Node,
        }
    }
}

/// An entry, as epoll's data: generation, index, side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    index: u32,
    generation: u32,
}

/// Indices are below this, so that no entry has the data of a descriptor of the engine's own.
const INDEX_MAX: u32 = 1 << 30;

impl Key {
    pub fn data(self, side: Side) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.index) << 1 | side as u64
    }

    pub fn of(data: u64) -> (Key, Side) {
        let key = Key {
            index: (data as u32) >> 1,
            generation: (data >> 32) as u32,
        };
        let side = if data & 1 == 0 {
            Side::Node
        } else {
            Side::Host
        };
        (key, side)
    }
}

#[derive(Debug)]
pub struct Slab<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub fn new() -> Slab<T> {
        Slab {
            places: Vec::new(),
            free: Vec::new(),
        }
    }

    /// A key for [`Slab::put`]; the place is taken once that is called.
    pub fn reserve(&mut self) -> Option<Key> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let index = u32::try_from(self.places.len()).ok();
                let index = index.filter(|index| *index < INDEX_MAX)?;
                self.places.push((0, None));
                index
            }
        };
        let place = &mut self.places[index as usize];
        // The engine's own descriptors have generation 0.
        place.0 = place.0.wrapping_add(1).max(1);
        Some(Key {
            index,
            generation: place.0,
        })
    }

    pub fn put(&mut self, key: Key, item: T) {
        if let Some((_, place)) = self.places.get_mut(key.index as usize) {
            *place = Some(item);
        }
    }

    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        match self.places.get_mut(key.index as usize) {
            Some((generation, item)) if *generation == key.generation => item.as_mut(),
            _ => None,
        }
    }

    pub fn take(&mut self, key: Key) -> Option<T> {
        let item = match self.places.get_mut(key.index as usize) {
            Some((generation, item)) if *generation == key.generation => item.take(),
            _ => None,
        };
        if item.is_some() {
            self.free.push(key.index);
        }
        item
    }

    /// Takes the entry out; its place stays reserved, for [`Slab::put`].
    pub fn take_out(&mut self, key: Key) -> Option<T> {
        match self.places.get_mut(key.index as usize) {
            Some((generation, item)) if *generation == key.generation => item.take(),
            _ => None,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.free.len() == self.places.len()
    }

    /// Gives a reserved place back that nothing was put into.
    pub fn give_back(&mut self, key: Key) {
        self.free.push(key.index);
    }

    pub fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.places.iter().enumerate().filter_map(|(index, place)| {
            let key = Key {
                index: index as u32,
                generation: place.0,
            };
            place.1.as_ref().map(|item| (key, item))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_key_finds_nothing() {
        let mut slab = Slab::new();
        let first = slab.reserve().unwrap();
        slab.put(first, 'a');
        assert_eq!(slab.take(first), Some('a'));
        let second = slab.reserve().unwrap();
        slab.put(second, 'b');
        assert_eq!(slab.get_mut(first), None);
        assert_eq!(slab.take(first), None);
        assert_eq!(slab.get_mut(second), Some(&mut 'b'));
    }

    #[test]
    fn data_and_back() {
        let mut slab = Slab::<()>::new();
        let key = slab.reserve().unwrap();
        for side in [Side::Node, Side::Host] {
            assert_eq!(Key::of(key.data(side)), (key, side));
        }
    }
}
