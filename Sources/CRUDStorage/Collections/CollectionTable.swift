package import CRUDModel

/// The collections that one event loop has used, by name.
///
/// An open-addressed table, so that a name is looked up as it stands in the request, without a copy. Names that a glob
/// maps but nobody has stored anything under are forgotten now and then: a peer must not be able to fill the memory by
/// naming them.
package struct CollectionTable {
    private var rules: CollectionRules
    /// By the name of the backend.
    private var clients: [String: BackendClient]
    private let serving: Serving.Lookup
    private var quiesced: QuiescedCollections?
    /// Those that it covers, of the collections in the table.
    private var waiting: [Collection] = []
    /// How many collections have been looked at for changes of rules or places.
    private(set) var visits = 0
    private var slots: [Collection?] = Array(repeating: nil, count: 64)
    private var count = 0
    /// How many collections without stored records are remembered at the most.
    private static let maximumUnopened = 4096

    /// - Parameter serving: says where a collection is served from; nil: where its rule puts it.
    package init(rules: CollectionRules, clients: [BackendClient], serving: Serving.Lookup? = nil) {
        self.rules = rules
        self.serving = serving ?? { Serving($1.place) }
        self.clients = Self.byName(clients)
    }

    private static func byName(_ clients: [BackendClient]) -> [String: BackendClient] {
        Dictionary(uniqueKeysWithValues: clients.map { ($0.backend.name, $0) })
    }

    /// The collection of that name; nil if no rule maps it.
    package mutating func collection(named name: Span<UInt8>) -> Collection? {
        if let known = known(name) {
            // It is opened by an act of the catalog, of which no loop is told.
            if known.closedReason != nil, !known.isQuiesced { _ = follow(known) }
            return known
        }
        let bytes = name.withUnsafeBufferPointer { Array($0) }
        guard let (rule, serving, client) = lookUp(bytes) else { return nil }
        let collection = Collection(name: bytes, rule: rule, client: client)
        collection.closedReason = serving.closedReason
        if quiesced?.covers(collection) == true { add(waiting: collection) }
        insert(collection)
        return collection
    }

    /// The collection of that name, if it is in the table.
    private func known(_ name: Span<UInt8>) -> Collection? {
        var slot = Self.hash(name) & (slots.count - 1)
        while let candidate = slots[slot] {
            let known = candidate.name
            if Self.same(known.span, name) { return candidate }
            slot = (slot + 1) & (slots.count - 1)
        }
        return nil
    }

    /// The rule of a collection in the place that it is served from; nil if no rule maps it.
    private func lookUp(_ name: [UInt8]) -> (CollectionRule, Serving, BackendClient)? {
        guard let rule = rules.rule(for: name.span) else { return nil }
        let serving = serving(name, rule)
        guard let client = clients[serving.place.backend] else { return nil }
        return (rule.place == serving.place ? rule : rule.placing(in: serving.place), serving, client)
    }

    /// Has a collection follow the rules and the catalog.
    ///
    /// - Returns: whether a rule maps it.
    private mutating func follow(_ collection: Collection) -> Bool {
        visits += 1
        let known = lookUp(collection.name)
        collection.isMapped = known != nil
        guard let (rule, serving, client) = known else { return false }
        collection.move(to: rule, client: client)
        collection.closedReason = serving.closedReason
        return true
    }

    /// How many requests each has had, those without any apart.
    package var requestCounts: [(name: [UInt8], count: UInt64)] {
        slots.compactMap(\.self).filter { $0.requestCount > 0 }.map { ($0.name, $0.requestCount) }
    }

    // MARK: Reloads

    /// Has the requests of the collections that `quiesced` covers wait, including those that are not in the table yet.
    ///
    /// - Returns: the clients of the backends that may have requests of these collections in flight.
    package mutating func quiesce(_ quiesced: QuiescedCollections) -> [BackendClient] {
        endWaiting()
        self.quiesced = quiesced
        var concerned = quiesced.backends
        // Where names say which are concerned, no other collection is looked at.
        let candidates =
            quiesced.names.map { names in names.compactMap { known($0.span) } }
            ?? quiesced.candidates(of: slots.compactMap(\.self))
        visits += candidates.count
        for collection in candidates where quiesced.covers(collection) {
            add(waiting: collection)
            concerned.insert(ObjectIdentifier(collection.backend))
        }
        return clients.values.filter { concerned.contains(ObjectIdentifier($0.backend)) }
    }

    /// Follows another configuration; nothing is quiesced any more. What no rule maps now is forgotten.
    package mutating func serve(rules: CollectionRules, clients: [BackendClient]) {
        let change = RuleChange(from: self.rules, to: rules)
        let former = self.clients
        self.rules = rules
        self.clients = Self.byName(clients)
        let isAlike = former.count == clients.count && clients.allSatisfy { former[$0.backend.name] === $0 }
        let concerned = endWaiting()
        if isAlike {
            let changed =
                change.globs.isEmpty
                ? change.names.compactMap { known($0.span) }
                : slots.compactMap(\.self).filter { change.covers($0.name) }
            if (concerned + changed).allSatisfy({ follow($0) }) { return }
        }
        refill(with: slots.compactMap(\.self).filter { follow($0) }, size: slots.count)
    }

    /// Serves what has been quiesced from where it is now. All others stay as they are.
    package mutating func serveQuiesced() {
        for collection in endWaiting() { _ = follow(collection) }
    }

    private mutating func add(waiting collection: Collection) {
        collection.isQuiesced = true
        waiting.append(collection)
    }

    /// Nothing is quiesced any more.
    ///
    /// - Returns: what was.
    @discardableResult
    private mutating func endWaiting() -> [Collection] {
        quiesced = nil
        for collection in waiting { collection.isQuiesced = false }
        defer { waiting = [] }
        return waiting
    }

    private mutating func insert(_ collection: Collection) {
        if (count + 1) * 2 > slots.count { rebuild() }
        place(collection)
        count += 1
    }

    /// Makes room: forgets what is not worth remembering, and doubles the table if it is still half full.
    private mutating func rebuild() {
        var kept = slots.compactMap(\.self)
        if kept.count >= Self.maximumUnopened { kept.removeAll { !$0.stored.isOpen && $0.requestsInFlight == 0 } }
        refill(with: kept, size: kept.count * 4 > slots.count ? slots.count * 2 : slots.count)
    }

    private mutating func refill(with kept: [Collection], size: Int) {
        slots = Array(repeating: nil, count: size)
        count = kept.count
        for collection in kept { place(collection) }
    }

    private mutating func place(_ collection: Collection) {
        let name = collection.name
        var slot = Self.hash(name.span) & (slots.count - 1)
        while slots[slot] != nil { slot = (slot + 1) & (slots.count - 1) }
        slots[slot] = collection
    }

    private static func same(_ left: Span<UInt8>, _ right: Span<UInt8>) -> Bool {
        guard left.count == right.count else { return false }
        for index in left.indices where left[index] != right[index] { return false }
        return true
    }

    /// FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/), folded, and seeded per process so that nobody can choose
    /// names that collide.
    private static func hash(_ name: Span<UInt8>) -> Int {
        var hash = seed
        for index in name.indices { hash = (hash ^ UInt64(name[index])) &* 0x100_0000_01B3 }
        return Int(truncatingIfNeeded: hash ^ hash >> 32)
    }

    private static let seed = UInt64.random(in: .min ... .max)
}
