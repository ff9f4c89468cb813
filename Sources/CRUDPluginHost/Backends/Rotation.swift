import CRUDModel

/// The long work that a thread has in hand, one slice of each in turn.
struct Rotation<Item: LongItem> {
    private var items: [Item] = []

    var isEmpty: Bool { items.isEmpty }

    /// Takes up an item that has been claimed.
    mutating func append(_ item: Item) { items.append(item) }

    /// Does a slice of the one whose turn it is.
    ///
    /// - Parameter slice: does it; answers whether the item is done, which is then delivered.
    mutating func advance(_ slice: (Item) -> Bool) {
        guard !items.isEmpty else { return }
        let item = items.removeFirst()
        if slice(item) { item.finish() } else { items.append(item) }
    }

    /// The thread ends: what it has in hand is delivered as it is.
    mutating func end() {
        for item in items {
            item.fail(CRUDError(.unavailable, "the backend is being closed"))
            item.finish()
        }
        items.removeAll()
    }
}
