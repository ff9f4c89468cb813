import CRUDTestSupport
import Glibc

/// What is done at random.
extension Administrator {
    enum Action: CaseIterable {
        case wait, move, cancel, elsewhere, again, awaitMoves
        case drop, dropIfEmpty, dropOriginals, dropBesideFault, force
        case reindex, changeIndexes, changeFeed, spare
        case orphan, misspell, sameFile
        case lock, fill, moveManyOnFullDisk
        case kill, stop, startMisspelt, startMistyped, loseCatalog
        case killChild, stopChild
        case check

        /// How often it is done, compared with others.
        var weight: Int {
            switch self {
            case .move: 24
            case .cancel: 12
            case .wait, .dropOriginals, .check: 10
            case .drop, .lock, .changeIndexes, .kill: 8
            case .again: 7
            case .dropBesideFault: 6
            case .elsewhere, .awaitMoves: 5
            case .moveManyOnFullDisk, .startMisspelt, .force, .sameFile, .killChild: 3
            case .dropIfEmpty, .reindex, .changeFeed, .spare, .orphan, .misspell, .fill, .stopChild: 3
            case .stop, .startMistyped, .loseCatalog: 2
            }
        }
    }

    func chooseAction() -> Action {
        let actions = Action.allCases.filter { !excluded.contains("\($0)") }
        var rest = number(below: actions.reduce(0) { $0 + $1.weight })
        for action in actions {
            rest -= action.weight
            if rest < 0 { return action }
        }
        return .wait
    }

    func execute(_ action: Action) throws {
        trace.add("\(action)")
        faults.remaining -= 1
        if faults.remaining == 0 { try heal() }
        switch action {
        case .wait: _ = try load.run(on: daemon, replies: 20 + number(below: 100), within: .seconds(1))
        case .move: try move()
        case .cancel, .elsewhere, .again: try change(action)
        case .awaitMoves: try awaitMoves(within: .seconds(5))
        case .drop: try drop(oneOf(names), "", killing: killing(oneIn: 6))
        case .dropIfEmpty: try drop(oneOf(names), #","ifEmpty":true"#, killing: nil)
        case .dropOriginals: try drop(oneOf(names), #","moved":true"#, killing: killing(oneIn: 8))
        case .dropBesideFault: try dropBesideFault()
        case .force:
            let name = oneOf(names)
            let place = place(for: name, isForced: true)
            try force(name, to: place, besideClients: happens(oneIn: 2), killing: killing(oneIn: 5))
        case .reindex: _ = try reply(to: "collection.reindex", #"{"collection":"\#(oneOf(names))"}"#)
        case .changeIndexes: try changeIndexes()
        case .changeFeed: try changeFeed()
        case .spare:
            var wanted = layout
            wanted.hasSpare = !wanted.hasSpare || wanted.rules.values.contains { $0.place.backend == "spare" }
            try reload(wanted)
        case .orphan:
            let name = oneOf(names)
            try reload(moving(name, to: place(for: name)))
        case .misspell: try misspell()
        case .sameFile: try reload(layout, killing: killing(oneIn: 4))
        case .lock: lock()
        case .fill:
            try setFull(true)
            lastFaults()
        case .moveManyOnFullDisk:
            try setFull(true)
            try move(count: names.count)
            try setFull(false)
        case .kill:
            try end()
            try startInForce()
        case .stop:
            try end(gracefully: true)
            try startInForce()
        case .startMisspelt: try startMisspelt()
        case .startMistyped: try startMistyped()
        case .loseCatalog: try loseCatalog()
        case .killChild: if let pid = try childPID() { Glibc.kill(pid, SIGKILL) }
        case .stopChild: try stopChild()
        case .check: try checkRecords(of: oneOf(names))
        }
    }

    /// After how many replies to clients the daemon is killed during a call; mostly not at all.
    func killing(oneIn count: Int) -> Int? { happens(oneIn: count) ? 1 + number(below: 60) : nil }
}
