import CRUDTestSupport

/// Tests that run crudctl with the shared daemon.
protocol CrudctlSuite {}

extension CrudctlSuite {
    func run(_ arguments: String..., input: String = "") throws -> Command.Outcome {
        try run(arguments: arguments, input: input)
    }

    func run(arguments: [String], input: String = "") throws -> Command.Outcome {
        try Command.run(
            BuildProducts.path(of: "crudctl"), arguments, environment: ["CRUDD_SOCKET": Daemon.shared.socketPath],
            input: input)
    }
}
