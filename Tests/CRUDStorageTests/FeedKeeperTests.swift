import CRUDModel
import CRUDPluginABI
import CRUDPluginHost
import CRUDTestSupport
import Glibc
import Testing

@testable import CRUDStorage

/// Feeds whose storage fails.
@Suite struct FeedKeeperTests {
    private static let capabilities: Plugin.Capabilities = [.concurrentReads, .fastReads, .sequences]

    /// Where forgetting has failed, and what was forgotten cannot be asked, that is tried again soon: until then nobody
    /// can follow the changes.
    @Test func feedIsBackSoonAfterAFailure() throws {
        let test = try TestBackend.opened(capabilities: Self.capabilities)
        let name = Array("trim:\(CRUDD_UNAVAILABLE)".utf8)
        let clients = BackendCollection(name: name, format: .json, retention: .seconds(86400))
        try test.write(.put("a"), in: clients)
        let feed = try #require(clients.feed)
        let deadline = Deadline()
        while test.plugin[.trims] < 4 || feed.history == nil {
            try #require(!deadline.hasPassed, "\(test.plugin[.trims]) calls of trim_history")
            poll(nil, 0, 10)
        }
        #expect(!feed.isUnknown)
    }
}
