import Glibc

/// A program that is run until it exits.
package enum Command {
    package struct Outcome: Sendable {
        package let status: ExitStatus
        package let output: String
        package let errors: String

        /// The lines of the error stream.
        package var errorLines: [String] { errors.split(separator: "\n").map(String.init) }
    }

    /// Runs `path` with `input` on its standard input and collects what it prints.
    package static func run(
        _ path: String, _ arguments: [String], environment: [String: String] = [:], input: String = "",
        descriptors: [(source: Descriptor, target: Int32)] = [], until deadline: Deadline = Deadline()
    ) throws -> Outcome {
        let directory = try TemporaryDirectory()
        try Files.write(input, to: "\(directory.path)/input")
        let standard = try ["input", "output", "errors"].enumerated().map {
            (try stream("\(directory.path)/\($1)"), Int32($0))
        }
        let process = try ChildProcess(
            path, arguments, environment: environment, descriptors: standard + descriptors)
        let status = try process.waitForExit(until: deadline)
        return Outcome(
            status: status, output: try text(of: "\(directory.path)/output"),
            errors: try text(of: "\(directory.path)/errors"))
    }

    private static func stream(_ path: String) throws -> Descriptor {
        let number = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard number >= 0 else { throw Failure.system("open \(path)") }
        return Descriptor(owning: number)
    }

    private static func text(of path: String) throws -> String {
        String(decoding: try Files.read(path), as: UTF8.self)
    }
}
