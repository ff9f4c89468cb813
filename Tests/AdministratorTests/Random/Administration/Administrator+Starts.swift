import CRUDTestSupport

/// Ends and starts of the daemon.
extension Administrator {
    /// A start with such a file, which must be refused and change nothing.
    func startMisspelt() throws {
        try heal()
        try end(gracefully: happens(oneIn: 2))
        let candidates = names.filter {
            load.histories[$0]?.certainCount ?? 0 > 0 && !isInMemory($0)
        }
        if !candidates.isEmpty {
            let name = oneOf(candidates)
            try installation.configure(layout.configuration(misspelling: name))
            guard let refusal = try start() else { throw Violation(description: "\(name) was orphaned at a start") }
            trace.add("a start with a misspelt name was refused: \(refusal)", to: [name])
        }
        try startInForce()
        for name in feeds.keys.sorted() { try checkRecords(of: name) }
    }

    /// A start with a wrong path of a database that has records: it must not be served as if it was empty.
    func startMistyped() throws {
        try heal()
        try end()
        let candidates = names.filter {
            load.histories[$0]?.certainCount ?? 0 > 0 && !isInMemory($0) && layout.rules[$0]?.place == served[$0]
                && served[$0]?.keepsFeeds == true
        }
        if !candidates.isEmpty {
            let name = oneOf(candidates)
            let backend = served[name]?.backend ?? ""
            let text = layout.configuration().text
            let mistyped = "/mistyped\(number(below: 1000)).sqlite"
            try installation.configure(text: text.replacing("/\(backend).sqlite", with: mistyped))
            guard try start() != nil else {
                throw Violation(description: "\(name): a new, empty database was accepted at a start")
            }
        }
        try startInForce()
    }

    private static var mostForgotten: Int { 6 }

    /// The daemon has to find out anew where collections are. Where none is being moved that is where the file says.
    func loseCatalog() throws {
        try heal()
        try awaitMoves(within: .seconds(5))
        if happens(oneIn: 2) { for name in names { try drop(name, #","moved":true"#, killing: nil) } }
        let isAtRest = try whereabouts().allSatisfy { $1.destination == nil && layout.rules[$0]?.place == $1.place }
        // What is still being removed would be found, and be there again.
        let removals = try reply(to: "daemon.status").result?["removals"]?.elements ?? []
        // Moves need places: what is forgotten is removed where the collection is forced there, and dropped.
        let isCrowded = names.contains { (forgotten[$0] ?? []).union(leftovers[$0] ?? []).count > Self.mostForgotten }
        guard isAtRest, removals.isEmpty, !isCrowded else { return }
        try end(gracefully: happens(oneIn: 2))
        // No drop will remove these.
        for (name, places) in leftovers { forgotten[name, default: []].formUnion(places) }
        leftovers = [:]
        let state = "\(installation.path)/state"
        for name in try Files.names(in: state) where name.hasSuffix(".jsonl") { Files.remove("\(state)/\(name)") }
        try startInForce()
    }

    func isInMemory(_ name: String) -> Bool {
        layout.rules[name]?.place.backend == "memory" || served[name]?.backend == "memory"
    }
}
