import CRUDTestSupport
import Testing

/// A start that fails says by its exit status whether another configuration would help.
@Suite struct StartFailureTests {
    @Test(arguments: ["/state\n", "/nowhere/state\n"])
    func aStateDirectoryThatCannotBeIsAnErrorOfTheConfiguration(place: String) throws {
        let installation = try Installation()
        Files.remove("\(installation.path)/state")
        try Files.write("", to: "\(installation.path)/state")
        try installation.configure(text: Configuration().text.replacing("/state\n", with: place))
        let outcome = try installation.startInVain()
        #expect(outcome.status == .exited(78))
        #expect(outcome.errors.hasPrefix("state_directory: "))
    }

    @Test func aSocketThatCannotBeIsAnErrorOfTheConfiguration() throws {
        let installation = try Installation()
        try installation.configure(text: Configuration().text.replacing("/crudd.sock", with: "/nowhere/crudd.sock"))
        let outcome = try installation.startInVain()
        #expect(outcome.status == .exited(78))
        #expect(outcome.errors.hasPrefix("socket.path: "))
    }

    @Test func wantOfDescriptorsIsNone() throws {
        let installation = try Installation()
        // Enough to check and load the plugin.
        let outcome = try Command.run(
            "sh",
            [
                "-c", #"ulimit -n 8; exec "$0" --config "$1""#, BuildProducts.path(of: "crudd"),
                installation.configurationFile,
            ])
        #expect(outcome.status == .exited(71), "\(outcome.errors)")
        #expect(outcome.errorLines.last?.contains("Too many open files") == true, "\(outcome.errors)")
    }
}
