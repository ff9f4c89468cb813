import ArgumentParser
import CRUDModel
import CRUDWire
import Glibc

struct Top: DaemonCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows what the daemon does, live.",
        discussion: """
            Requests by method and collection with their rates and times (half of them are faster than P50, 99 of 100 \
            faster than P99), the record cache, backends and moves, drawn again every second. q ends it.
            """)

    @OptionGroup(title: "Global options") var options: GlobalOptions

    /// How often the daemon is asked.
    private static let interval = Duration.seconds(1)
    /// How long a reply may take, unless the command line says.
    private static let timeout = 5.0

    func run() async throws {
        let terminal = try TopTerminal(allowsColor: !options.noColor)
        var state = TopState()
        // What is wrong from the beginning is an error like that of any other command.
        try await withClient { try await Self.update(&state, $0) }
        try terminal.begin()
        defer { terminal.restore() }
        while true {
            do {
                try await withClient(timeout: options.timeout ?? Self.timeout) { client in
                    while try Self.show(state, on: terminal) { try await Self.update(&state, client) }
                }
                return
            } catch let error as CRUDError {
                state.lose("\(error.code.name): \(error.message)")
                guard try Self.show(state, on: terminal) else { return }
            }
        }
    }

    private static func update(_ state: inout TopState, _ client: Client) async throws {
        let result = ResultObject(
            try await client.call("daemon.metrics", json: Array(#"{"histograms":true}"#.utf8)))
        guard let text = result?.string("text") else {
            throw CRUDError(.internalError, "the daemon's metrics have no text")
        }
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        let histograms = (result?.elements("histograms") ?? []).compactMap { ResultObject(Array($0)) }
        state.update(
            MetricsReader(text, histograms: histograms), at: (ContinuousClock.now - Self.start) / .seconds(1),
            now: Double(now.tv_sec))
    }

    private static let start = ContinuousClock.now

    /// Shows the state until it is time for another one; false if the user wants to end.
    private static func show(_ state: TopState, on terminal: TopTerminal) throws -> Bool {
        let deadline = ContinuousClock.now + interval
        while true {
            let size = terminal.size
            let screen = TopScreen(state: state, width: size.width, height: size.height)
            try terminal.draw(screen.lines, height: size.height)
            switch terminal.wait(until: deadline) {
            case .none: return true
            case .quit: return false
            case .resized: continue
            }
        }
    }
}
