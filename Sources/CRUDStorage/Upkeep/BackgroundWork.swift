/// What a backend's writer does in small steps between the writes of clients.
protocol BackgroundWork: AnyObject {
    /// How long until the next step; nil where there is nothing to do.
    var timeUntilDue: Duration? { get }

    /// Executes a step if it is time for one.
    func advanceIfDue()
}
