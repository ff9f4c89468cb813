import CRUDTestSupport

/// Changes of the file.
extension Administrator {
    /// Where a collection is, and where it is being moved to.
    struct Whereabouts {
        var place: Place
        var destination: Place?
    }

    func whereabouts() throws -> [String: Whereabouts] {
        var found: [String: Whereabouts] = [:]
        let list = try reply(to: "collection.list").result?["collections"]?.elements ?? []
        for entry in list {
            if let name = entry["name"]?.string, let place = Place(entry) { found[name] = Whereabouts(place: place) }
        }
        for move in try reply(to: "daemon.status").result?["moves"]?.elements ?? [] {
            guard let name = move["collection"]?.string, let from = Place(move["from"]) else { continue }
            found[name] = Whereabouts(place: from, destination: Place(move["to"]))
        }
        for (name, known) in found { served[name] = known.place }
        return found
    }

    /// Has the daemon read another file.
    ///
    /// - Parameter killing: the daemon is killed after so many replies to clients, if it has not replied by then.
    /// - Returns: whether that file is in force now.
    @discardableResult
    func reload(_ wanted: Layout, move: Bool = false, force: Bool = false, killing: Int? = nil) throws -> Bool {
        let changed = names.filter { wanted.rules[$0] != layout.rules[$0] }
        let text = changed.map { "\($0): \(wanted.rules[$0].map { "\($0)" } ?? "")" }.joined(separator: "; ")
        trace.add("reload move \(move) force \(force) \(wanted.hasSpare) \(text)", to: changed)
        try installation.configure(wanted.configuration())
        let options = "\"move\":\(move),\"force\":\(force)"
        let paused = load.paused
        let isForetold = killing == nil && happens(oneIn: 3)
        let forecast = isForetold ? try forecast(of: wanted, changed, options, isForced: force) : nil
        let outcome = try call("daemon.reload", "{\(options)}", killing: killing)
        load.paused = paused
        if let forecast, case .reply(let reply) = outcome { try check(reply, forecast) }
        switch outcome {
        case .reply(let reply) where reply.result != nil:
            trace.add("reloaded: \(reply.result?.text ?? "")", to: changed)
            accept(wanted, move)
            try checkPlaces(of: changed)
            return true
        case .reply(let reply) where reply.error?.name != "outcome_unknown":
            trace.add("not reloaded: \(reply.error?.message ?? "")", to: changed)
            try check(refusal: reply, of: wanted, move, force)
            try installation.configure(layout.configuration())
            return false
        case .reply:
            try end()
            return try startWithEither(wanted, move, force)
        case .lost:
            return try startWithEither(wanted, move, force)
        }
    }

    /// The daemon has ended while it was reloading: it has to accept what was in force before, or would be now.
    private func startWithEither(_ wanted: Layout, _ move: Bool, _ force: Bool) throws -> Bool {
        trace.add("killed during the reload")
        try setFull(false)
        guard let refusal = try start((move ? ["--move"] : []) + (force ? ["--force"] : [])) else {
            trace.add("started with the new file")
            accept(wanted, move)
            return true
        }
        trace.add("the new file was refused: \(refusal)")
        try installation.configure(layout.configuration())
        if let other = try start() {
            throw Violation(description: "neither file is accepted after a kill: \(refusal)\n\(other)")
        }
        return false
    }

    private func accept(_ wanted: Layout, _ move: Bool) {
        for (name, rule) in wanted.rules where layout.rules[name] != rule {
            guard let former = layout.rules[name] else { continue }
            if former.place != rule.place {
                let places = [former.place, rule.place, served[name]].compactMap(\.self)
                // Without a move a collection that is empty has a new feed where it is from now on.
                if !move || !places.allSatisfy(\.keepsFeeds) { feeds[name]?.mayEnd() }
                leftovers[name, default: []].formUnion([former.place, rule.place])
                if let place = served[name] { leftovers[name, default: []].insert(place) }
            }
            if former.changes != rule.changes { feeds[name] = rule.changes ? FeedFollower() : nil }
        }
        layout = wanted
    }

    private func check(refusal reply: Reply, of wanted: Layout, _ move: Bool, _ force: Bool) throws {
        let name = reply.error?.name ?? ""
        guard ["invalid_configuration", "unavailable", "no_space"].contains(name) else {
            throw Violation(description: "a reload: \(reply)")
        }
        if wanted == layout, name == "invalid_configuration" {
            throw Violation(description: "the file in force was refused by a reload: \(reply)")
        }
        try checkHint(reply.error?.message ?? "")
    }

    /// No message names a command that would delete records that are served.
    func checkHint(_ message: String) throws {
        for line in message.split(separator: "\n") where line.contains("drop") && !excluded.contains("hints") {
            guard line.contains("drop --moved") || line.contains("--moved") else {
                throw Violation(description: "a hint to delete what is served: \(line)")
            }
            for (name, known) in try whereabouts() where line.contains("collection \(name) ") {
                guard line.contains("moved from \(known.place)") else { continue }
                throw Violation(description: "a hint to delete originals that are served: \(line)")
            }
        }
    }

    /// Each collection is where the file wants it, or is being moved there.
    func checkPlaces(of names: [String]) throws {
        for name in names {
            let reply = try reply(to: "collection.describe", #"{"collection":"\#(name)"}"#)
            guard let description = reply.result, let place = Place(description) else { continue }
            served[name] = place
            let wanted = layout.rules[name]?.place
            if place == wanted { continue }
            // Copies of a move that was cancelled are removed there before the next one begins.
            if Place(description["move"]?["to"]) == wanted { continue }
            throw Violation(
                description: "\(name) is wanted in \(wanted.map { "\($0)" } ?? ""), but: \(description.text)")
        }
    }

    // MARK: Force

    /// Maps a collection to another place and leaves its records where they are. What is there is served, even where
    /// the catalog does not know of it.
    func force(_ name: String, to place: Place, besideClients: Bool, killing: Int?) throws {
        defer { load.paused.remove(name) }
        try pause(name)
        guard let known = try whereabouts()[name], known.place != place else { return }
        let isClean =
            known.destination == nil && !mayHaveRecords(of: name, in: place.backend)
            && known.place.backend != place.backend
        if besideClients, isClean { load.paused.remove(name) }
        var wanted = layout
        wanted.rules[name]?.place = place
        if !place.keepsFeeds { wanted.rules[name]?.changes = false }
        feeds[name]?.mayEnd()
        let ticket = isClean ? load.histories[name]?.beginDrop() : nil
        let isAccepted = try reload(wanted, force: true, killing: killing)
        if let ticket {
            // After a kill it has ended already.
            try load.histories[name]?.endDrop(ticket, isAccepted ? .done : .refused)
        }
        guard isAccepted else { return }
        if !isClean {
            load.paused.insert(name)
            load.histories[name]?.replaceByPast()
        }
        trace.add("forced, clean: \(isClean)", to: [name])
        try checkRecords(of: name)
    }
}
