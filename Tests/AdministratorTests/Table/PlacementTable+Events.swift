import CRUDModel
import CRUDPlacement
import CRUDTestSupport
import Glibc
import Testing

/// Events, and what the model makes of them.
extension PlacementTable {
    /// Where the daemon is killed.
    enum Kill: Int, CaseIterable {
        case beforeWrite, beforeSync, afterSync

        /// The number of the call at which it is.
        fileprivate var call: Int { self == .beforeWrite ? 1 : 2 }
    }

    private static let catalog = "collections.jsonl"

    /// What is to become of a collection by an event.
    private func outcome(of event: TableEvent, on name: String) throws -> Placement.Outcome {
        let placement = placements[name] ?? Placement.none
        let place = placement.authority
        if event.isAfterDeletion, let place {
            for id in ["1", "zz"] { _ = try connection.delete(name, id) }
            items[name]?[place] = nil
            withNull.remove(name)
        }
        let isThere = place.map { items[name]?[$0] != nil } ?? false
        let count = (isThere ? 1 : 0) + (withNull.contains(name) ? 1 : 0)
        return placement.next(event.event(placement, wanted: wanted[name] ?? .p, records: count))
    }

    private func perform(_ event: TableEvent, on name: String) throws -> Reply {
        switch event.action {
        case .write: return try connection.upsert(name, "1", "3")
        case .reload(let wish):
            var wanted = wanted
            wanted[name] = wish.place
            try configure(wanted)
            return try connection.call("daemon.reload", #"{"force":\#(wish.force),"move":\#(wish.move)}"#)
        case .drop: return try connection.call("collection.drop", #"{"collection":"\#(name)"}"#)
        case .dropOriginals:
            return try connection.call("collection.drop", #"{"collection":"\#(name)","moved":true}"#)
        }
    }

    // MARK: One collection

    /// An event that fails twice, as its record cannot be written, and then happens.
    func check(_ event: TableEvent) throws {
        let name = Self.name(event)
        let former = placements[name] ?? Placement.none
        let outcome = try outcome(of: event, on: name)
        if case .to(let next) = outcome {
            for operation in ["write", "sync"] { try checkFault(operation, event, name, former, next) }
        }
        let reply = try perform(event, on: name)
        apply(outcome, event, name)
        if case .write = event.action, let place = placements[name]?.authority {
            items[name, default: [:]][place] = "3"
        }
        check(reply, to: event, name, from: former, outcome)
        try check(name, "\(reply)")
    }

    /// The record of an event cannot be written, or not be synced, so that it is in doubt: nothing has changed.
    private func checkFault(
        _ operation: String, _ event: TableEvent, _ name: String, _ former: Placement, _ next: Placement
    ) throws {
        try disk.fail(operation, Self.catalog)
        let reply = try perform(event, on: name)
        // What cannot be created is not there, whatever the next start finds.
        let isInDoubt = operation == "sync" && event != .create
        #expect(
            reply.error?.name == (isInDoubt ? "outcome_unknown" : "unavailable"),
            "\(situation.testDescription), \(name), \(operation): \(reply)")
        if isInDoubt, former.authority != next.authority {
            let read = try connection.read(name, "1")
            #expect(read.error?.name == "unavailable", "\(situation.testDescription), \(name), in doubt: \(read)")
        } else {
            try checkServed(name, "beside a failed \(operation)")
        }
        try disk.heal()
        try endDoubt()
        try check(name, "after a failed \(operation)")
    }

    /// The daemon tries each second; so does every further record.
    private func endDoubt() throws {
        #expect(try connection.upsert(Self.unused, "1", "1").result != nil)
        let drop = try connection.call("collection.drop", #"{"collection":"\#(Self.unused)"}"#)
        #expect(drop.result?["dropped"]?.boolean == true, "\(drop)")
        try awaitStatus("the drop takes long") { status in
            status["removals"]?.elements?.contains { $0["collection"]?.string == Self.unused } == false
        }
        let status = try connection.call("daemon.status").result
        #expect(status?["catalog"]?.text == #"{"state":"ready"}"#)
    }

    /// An event that changes something, in which the daemon is killed.
    func check(_ event: TableEvent, _ kill: Kill) throws {
        let name = Self.name(event, kill.rawValue)
        let former = placements[name] ?? Placement.none
        let outcome = try outcome(of: event, on: name)
        guard case .to = outcome else { return }
        try disk.kill(atCall: kill.call, of: Self.catalog, isAfter: kill == .afterSync)
        #expect(throws: Failure.self, "\(situation.testDescription), \(name): not killed") {
            _ = try perform(event, on: name)
        }
        try disk.heal()
        #expect(try daemon.process.waitForExit() == .killed(signal: SIGKILL))
        let isRecorded = try recorded(name) != former
        // A short record is appended; a file that replaces the other is synced before it does.
        if kill != .beforeSync {
            #expect(isRecorded == (kill == .afterSync), "\(situation.testDescription), \(name)")
        }
        if isRecorded { apply(outcome, event, name) }
        try configure(wanted)
        try start()
        try check(name, "after the kill")
    }

    // MARK: The model

    /// Follows an event, and what comes of it where backends are up.
    private func apply(_ outcome: Placement.Outcome, _ event: TableEvent, _ name: String) {
        if case .refused = outcome { return }
        if case .to(let next) = outcome { placements[name] = next }
        if case .reload(let wish) = event.action { wanted[name] = wish.place }
        if case .drop = event.action { withNull.remove(name) }
        executeActs(of: name)
    }

    private func executeActs(of name: String) {
        var placement = placements[name] ?? Placement.none
        while let act = placement.acts.first(where: { canEnd($0, of: name) }) {
            let end: PlacementEvent
            switch act {
            case .remove(let place):
                items[name]?[place] = nil
                end = .removed(place)
            case .probe(let place): end = .vacant(place)
            case .copy(let source, let target):
                let copies = items[name]?[source]
                items[name]?[target] = copies
                end = .copied(to: target)
            case .beginFeed(let place): end = .begunFeed(place)
            }
            guard case .to(let next) = placement.next(end) else { break }
            placement = next
        }
        placements[name] = placement
    }

    private func canEnd(_ act: Placement.Act, of name: String) -> Bool {
        switch act {
        case .remove(let place), .probe(let place), .beginFeed(let place): !down.contains(place.backend)
        case .copy(let source, let target):
            !down.contains(source.backend) && !down.contains(target.backend)
                && !(withNull.contains(name) && target.format == .plist)
        }
    }

    // MARK: All collections

    /// The backend that has originals gets another storage by force: what was there is forgotten, and nothing else.
    func replaceStorage() throws {
        replaced = ["x"]
        try configure(wanted)
        try reload(force: true)
        for name in names {
            let former = placements[name] ?? Placement.none
            if case .to(let next) = former.next(.leave(backend: "x")) { placements[name] = next }
            items[name]?[.x] = nil
            try check(name, "with another storage")
        }
    }

    /// Backends that were down are up, and what a format could not hold is replaced: everything comes to its end, and
    /// stays so after another start.
    func repair() throws {
        try configure(wanted)
        #expect(try daemon.stop() == .exited(0))
        setUp()
        try start()
        for name in withNull where placements[name]?.destination != nil {
            #expect(try connection.upsert(name, "zz", "4").result != nil)
            withNull.remove(name)
        }
        try reload(move: true)
        for name in names { executeActs(of: name) }
        for round in ["repaired", "after a start"] {
            for name in names {
                #expect(placements[name]?.isAtRest == true, "\(situation.testDescription), \(name)")
                try check(name, round)
            }
            try restart()
        }
    }
}
