import CRUDModel
import CRUDWire

/// Tells a user whom the access rules let read nothing from one who has stored nothing: both see no collections.
enum Denial {
    /// - Throws: `permission_denied` if the rules let the caller read no collection, whatever there is.
    static func check(_ client: Client) async throws {
        guard let caller = ResultObject(try await client.call("session.whoami", json: Array("{}".utf8))) else { return }
        let rules = (caller.elements("access") ?? []).compactMap { ResultObject(Array($0)) }
        guard !rules.contains(where: { $0.strings("allow")?.contains("read") == true }) else { return }
        throw CRUDError(
            .permissionDenied,
            "the access rules let \(Account.user(caller.integer("uid") ?? 0)) read no collection, whatever there is")
    }
}
