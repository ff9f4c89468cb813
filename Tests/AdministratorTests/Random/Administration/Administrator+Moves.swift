import CRUDTestSupport

/// Files that change where collections are, and what is kept of them.
extension Administrator {
    /// Whether a backend may have records of a collection that is served from another one.
    func mayHaveRecords(of name: String, in backend: String) -> Bool {
        (leftovers[name] ?? []).union(forgotten[name] ?? []).contains { $0.backend == backend }
    }

    /// A place for a collection; seldom one that may have records of it already.
    ///
    /// - Parameter isForced: whether it may be one that the catalog has forgotten.
    func place(for name: String, isForced: Bool = false) -> Place {
        let places = layout.backends.flatMap { backend in Layout.formats.map { Place(backend, $0) } }
            .filter { $0 != served[name] && (isForced || forgotten[name]?.contains($0) != true) }
        let clean = places.filter { !mayHaveRecords(of: name, in: $0.backend) }
        return oneOf(clean.isEmpty || happens(oneIn: 6) ? places : clean)
    }

    func moving(_ name: String, to place: Place, in layout: Layout? = nil) -> Layout {
        var wanted = layout ?? self.layout
        wanted.rules[name]?.place = place
        let hasChanges = layout?.rules[name]?.changes ?? self.layout.rules[name]?.changes ?? false
        wanted.rules[name]?.changes = place.keepsFeeds && (hasChanges || happens(oneIn: 4))
        return wanted
    }

    func move(count: Int? = nil) throws {
        _ = try whereabouts()
        var wanted = layout
        for _ in 0..<(count ?? 1 + number(below: 3)) {
            let name = oneOf(names)
            wanted = moving(name, to: place(for: name), in: wanted)
        }
        try reload(wanted, move: true, killing: killing(oneIn: 8))
    }

    /// Something else for a collection that is being moved: back, elsewhere, or back and there again.
    func change(_ action: Action) throws {
        let moves = try whereabouts().filter { $0.value.destination != nil }.sorted { $0.key < $1.key }
        guard !moves.isEmpty else { return try move() }
        let (name, known) = oneOf(moves)
        if action == .elsewhere {
            try reload(moving(name, to: place(for: name)), move: true, killing: killing(oneIn: 8))
            return
        }
        let isKilled = action == .cancel && happens(oneIn: 4)
        // What cannot be removed yet is in the way for longer.
        if action == .again, let destination = known.destination, destination.keepsFeeds,
            happens(oneIn: 2)
        {
            lock([destination.backend])
        }
        try reload(moving(name, to: known.place), killing: isKilled ? 1 + number(below: 40) : nil)
        guard action == .again, let destination = known.destination else { return }
        try reload(moving(name, to: destination), move: true, killing: killing(oneIn: 3))
        if happens(oneIn: 2) { try heal() }
        // What happens to others concerns it as little as a start.
        switch number(below: 3) {
        case 0: try drop(oneOf(names.filter { $0 != name }), "", killing: nil)
        case 1:
            try end()
            try startInForce()
        default: break
        }
        try checkPlaces(of: [name])
        try checkRecords(of: name)
    }

    private static let indexes = [[], ["n"], ["k"], ["n", "k"], ["k", "n"], ["p", "k", "n"], ["k", "p"]]

    func changeIndexes() throws {
        var wanted = layout
        for _ in 0..<1 + number(below: 2) {
            wanted.rules[oneOf(names)]?.indexes = oneOf(Self.indexes)
        }
        try reload(wanted, killing: killing(oneIn: 12))
    }

    func changeFeed() throws {
        var wanted = layout
        let name = oneOf(names)
        guard let rule = wanted.rules[name], rule.place.keepsFeeds else { return }
        wanted.rules[name]?.changes = !rule.changes
        try reload(wanted)
    }

    /// A file that has no rule for a collection with records.
    func misspell() throws {
        let name = oneOf(names)
        defer { load.paused.remove(name) }
        try pause(name)
        guard load.histories[name]?.certainCount ?? 0 > 0 else { return }
        try installation.configure(layout.configuration(misspelling: name))
        let reply = try reply(to: "daemon.reload", #"{"move":true}"#)
        guard let error = reply.error else { throw Violation(description: "\(name) was orphaned: \(reply)") }
        trace.add("misspelt: \(error.message)", to: [name])
        try checkHint(error.message)
        try installation.configure(layout.configuration())
    }
}
