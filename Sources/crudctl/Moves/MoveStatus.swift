import CRUDWire

/// A move that is not over, as `daemon.status` shows it.
struct MoveStatus {
    /// The name of the collection.
    let collection: String
    /// Such as `backend files as xml`.
    let target: String
    let copied: Int
    let total: Int
    let phase: String
    /// Why it is suspended or has failed, or what it waits for.
    let reason: String

    /// Nil if `object` lacks something.
    init?(_ object: ResultObject) {
        guard let collection = object.string("collection"), let phase = object.string("phase"),
            let copied = object.integer("copied"), let total = object.integer("total"),
            let target = object.object("to").flatMap(Self.place)
        else { return nil }
        self.collection = collection
        self.target = target
        self.copied = copied
        self.total = total
        self.phase = phase
        reason = object.string("reason") ?? "the log of the daemon says why"
    }

    /// A place as an error describes it; nil if `object` is none.
    static func place(_ object: ResultObject) -> String? {
        guard let backend = object.string("backend"), let format = object.string("format") else { return nil }
        return "backend \(backend) as \(format)"
    }

    var isSuspended: Bool { phase == "suspended" }
    var hasFailed: Bool { phase == "failed" }
}
