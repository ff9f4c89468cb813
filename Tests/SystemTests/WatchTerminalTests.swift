import CRUDTestSupport
import Testing

/// `crudctl watch` on a real terminal, where lines may be longer than the terminal is wide.
@Suite struct WatchTerminalTests {
    private static let configuration = Configuration(collections: "clients: {backend: main, changes: true}")

    private static func change(_ id: String, _ item: String, _ revision: String) -> String {
        #"{"id":"\#(id)","item":\#(item),"revision":"\#(revision)"}"#
    }

    @Test(arguments: [(80, 24), (40, 10), (200, 60)])
    func printsLineByLineAndLeavesTheTerminalAsItWas(width: Int, height: Int) throws {
        let daemon = try Daemon(Self.configuration)
        let connection = try daemon.connect()
        let terminal = try Tmux(width: width, height: height)
        let (settings, crudctl) = ("\(daemon.installation.path)/before", try BuildProducts.path(of: "crudctl"))
        try terminal.enter("stty -g > \(settings); clear; \(crudctl) watch clients --socket \(daemon.socketPath)")
        // The command has no more than its line on the screen before something changes.
        let long = #"{"text":""# + String(repeating: "0123456789", count: width / 8) + #""}"#
        let first = try revision(of: connection.create("clients", "first", long))
        let line = Self.change("first", long, first)
        let screen = try terminal.wait(for: "the change") { $0.joined(separator: "") == line }
        #expect(screen.count > 1 && screen.dropLast().allSatisfy { $0.count == width })
        // More than the screen holds: the last lines are visible.
        for number in 0..<height { _ = try connection.create("clients", "\(number)", "null") }
        let last = Self.change("last", "[]", try revision(of: connection.create("clients", "last", "[]")))
        let full = try terminal.wait(for: "the last change") { $0.joined(separator: "").hasSuffix(last) }
        #expect(full.count >= height - 1 && !full.joined(separator: "").contains("first"))
        try terminal.press("C-c")
        try terminal.wait(for: "the shell") { $0.last == "$" }
        try terminal.enter("echo status $?; stty -g | cmp - \(settings) && echo 'as'  'before'")
        let end = try terminal.wait(for: "the former mode") { $0.contains("as before") }
        #expect(end.contains("status 130"))
    }

    private func revision(of reply: Reply) throws -> String {
        try #require(reply.result?["revision"]?.string)
    }
}
