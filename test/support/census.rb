# frozen_string_literal: true

module Support
  # The serving processes, according to the events of a ServerProcess and /proc.
  class Census
    STARTS = %w[worker.ready mold.ready service.ready reactor.ready].freeze
    ENDS = %w[worker.leaving worker.exited worker.killed worker.lost worker.failed
              mold.retired mold.discarded mold.exited mold.killed mold.lost mold.failed service.exited service.lost
              reactor.lost reactor.exited reactor.killed reactor.failed].freeze

    def initialize(server)
      @server = server
    end

    # @return [Array<Integer>] pids of the workers that take requests, by slot; nil where there is none
    def workers(slots)
      ready = serving("worker")
      (0...slots).map { |slot| ready.find { |event| event["slot"] == slot }&.fetch("pid") }
    end

    # @return [Array<Integer>] pids of the molds that can fork
    def molds = serving("mold").map { |event| event["pid"] }

    def services = serving("service").map { |event| event["pid"] }

    def reactors = serving("reactor").map { |event| event["pid"] }

    # Whether all slots have a worker and there is a mold that can fork more.
    def full?(slots) = workers(slots).none?(&:nil?) && molds.any?

    # A process that was killed still shows as alive until the kernel has run it once more.
    def alive?(pid)
      !File.read("/proc/#{pid}/stat")[/\) (\w)/, 1].match?(/[ZX]/)
    rescue Errno::ENOENT, Errno::ESRCH
      false
    end

    def to_s = @server.tree.children.map(&:title).join(", ")

    private

    def serving(role)
      names = (STARTS + ENDS).grep(/\A#{role}\./)
      last = @server.events.select { |event| names.include?(event["event"]) }.to_h { |event| [event["pid"], event] }
      last.values.select { |event| STARTS.include?(event["event"]) && alive?(event["pid"]) }
    end
  end
end
