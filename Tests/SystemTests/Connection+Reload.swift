import CRUDTestSupport

extension Connection {
    /// `daemon.reload`, which must succeed; returns what has changed.
    func reload(force: Bool = false) throws -> [String] {
        let reply = try call("daemon.reload", force ? #"{"force":true}"# : "{}")
        guard let changes = reply.result?["changes"]?.elements else { throw Failure("no reload: \(reply)") }
        return changes.compactMap(\.string)
    }

    /// `daemon.reload`, which must be refused.
    func reloadInVain() throws -> ReplyError {
        let reply = try call("daemon.reload")
        guard let error = reply.error else { throw Failure("a reload: \(reply)") }
        return error
    }

    /// What `backend.list` tells of a backend; nil if there is none of that name.
    func backend(_ name: String) throws -> JSON? {
        try call("backend.list").result?["backends"]?.elements?.first { $0["name"]?.string == name }
    }
}
