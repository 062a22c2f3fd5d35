# frozen_string_literal: true

require "fileutils"
require "json"
require "tmpdir"
require "pando/errors"
require "pando/server/launch"
require "pando/sys"
require "pando/doctor/conversation"
require "pando/doctor/journal"

module Pando
  module Doctor
    # The application could not be examined; the message says why. The command exits 2.
    class NotExamined < Error; end

    # The server that the doctor starts, questions, reforks and stops: a real monitor, mold and workers, on UNIX sockets
    # in a temporary folder. Owned by the command's process.
    class Stage
      # A process of the stage; only a worker has a slot.
      Actor = Struct.new(:role, :slot, :generation, :pid) do
        def title = role == "worker" ? "worker #{slot} gen #{generation}" : "#{role} gen #{generation}"
      end

      WORKERS = 2
      SCRIPT = File.expand_path("subject/monitor.rb", __dir__)
      LONGEST_FOLDER = 60 # bytes, because a UNIX socket's path has at most 107
      TAIL = 4000 # characters of the output in an error message
      REFORK_WITHIN = 60.0 # seconds
      STOP_GRACE = 5.0 # seconds beyond `stop_timeout`

      attr_reader :folder

      # @param config [Config] @param patience [Float] seconds for any one answer
      # @param trace [Boolean] find the lines that make native threads and descriptors; slow
      def initialize(config, patience:, workers: WORKERS, trace: false)
        @config = config
        @patience = patience
        @workers = workers
        @trace = trace
      end

      # @yieldparam stage [Stage] it serves; it is ended after the block
      # @raise [NotExamined] the application does not boot
      def self.open(config, **options)
        stage = new(config, **options)
        stage.start
        yield stage
      ensure
        stage&.close
      end

      def start
        @folder = Dir.mktmpdir("pando-doctor", (short_folder if Dir.tmpdir.bytesize > LONGEST_FOLDER))
        @journal = Journal.new(folder)
        @pid = Process.spawn(environment, *command, chdir: @config.directory, in: File::NULL, pgroup: true,
                                                    out: output_path, err: %i[child out])
        @waiter = Process.detach(@pid)
        await(@config.boot_timeout + @patience) { |fact| fact[:event] == "generation.current" && fact }
      rescue Journal::Silence
        raise NotExamined, failure("the application was not ready in time")
      end

      # @return [Array<Actor>] the ready workers of a generation, by slot
      def workers(generation)
        ended = reports(:event).select { |fact| ENDED.include?(fact[:event]) }.map { |fact| fact[:pid] }
        reports(:event).select { |fact| fact[:event] == "worker.ready" && fact[:generation] == generation }
                       .reject { |fact| ended.include?(fact[:pid]) }
                       .map { |fact| Actor.new("worker", fact[:slot], generation, fact[:pid]) }
                       .sort_by(&:slot)
      end

      ENDED = %w[worker.exited worker.lost worker.killed worker.leaving].freeze
      private_constant :ENDED

      # @return [Actor]
      def mold(generation)
        ready = reports(:event).reverse.find { |fact| fact[:event] == "mold.ready" && fact[:generation] == generation }
        ready && Actor.new("mold", nil, generation, ready[:pid])
      end

      # The processes' reports, see {Journal}.
      def facts = @journal.facts
      def reports(kind) = @journal.reports(kind)
      def mark = @journal.mark
      def await(seconds, from = 0, &block) = @journal.await(seconds, from, alive: @waiter.method(:alive?), &block)

      # @return [Conversation]
      def talk_to(actor, patience = @patience) = Conversation.new(self, actor, patience)

      # Reforks and waits for the next generation. Right after a rollout the server refuses for a moment.
      # @return [Integer, nil] its number; nil: there will be none, and a fact says why
      def refork
        deadline = Sys.now + REFORK_WITHIN + @patience
        until (done = try_refork(deadline))[:event] != "refork.refused" || lasting?(done)
          IO.select(nil, nil, nil, RETRY_AFTER)
        end
        done[:generation] if done[:event] == "refork.finished"
      rescue Journal::Silence, Errno::ESRCH
        nil
      end

      REFORKED = %w[refork.finished refork.refused generation.discarded monitor.stopped].freeze
      # Refusals that waiting does not change.
      LASTING = ["reforking is switched off", "no worker is fit to become a mold"].freeze
      RETRY_AFTER = 0.02 # seconds
      private_constant :REFORKED, :LASTING, :RETRY_AFTER

      # Asks the server to stop, so that at_exit handlers and finalizers run.
      def stop
        return unless @waiter&.alive?

        Process.kill("TERM", @pid)
        @journal.hear_all if @waiter.join(@config.stop_timeout + STOP_GRACE)
      rescue Errno::ESRCH
        nil
      end

      def close
        kill_all if @waiter
        @journal&.close
        FileUtils.rm_rf(folder) if folder
      end

      # The end of the server's and the application's output.
      def output
        text = File.exist?(output_path) ? File.read(output_path, mode: "rb").scrub : ""
        text[-TAIL..] || text
      end

      # @return [String] why there is nothing to examine
      def failure(summary)
        refused = reports(:refused).first
        return refused[:refused] if refused

        events = reports(:event)
        stopped = events.find { |fact| fact[:event] == "monitor.stopping" }
        ended = events.reverse.find { |fact| fact[:event] == "generation.discarded" }
        reason = ended&.fetch(:reason, nil) || stopped&.fetch(:reason, nil) || summary
        [reason, output.strip].reject(&:empty?).join("\n")
      end

      private

      # @param refused [Hash] a `refork.refused`
      # @return [Boolean] whether waiting is useless: a worker has refused to be forked, for instance
      def lasting?(refused) = LASTING.include?(refused[:reason]) || refused.key?(:source)

      def try_refork(deadline)
        from = mark
        Process.kill("USR2", @pid)
        await(deadline - Sys.now, from) { |fact| fact if REFORKED.include?(fact[:event]) }
      end

      def short_folder = "/tmp"
      def output_path = File.join(folder, "output")

      def environment
        settings = { folder: folder, patience: @patience, trace: @trace,
                     threads: Config::Threads.most(@config) > 1 }
        { "PANDO_DOCTOR" => JSON.generate(settings) }
      end

      def command
        launch = Server::Launch.command(@config).map { |word| word == Server::Launch::SCRIPT ? SCRIPT : word }
        # Behind the user's own flags: the last one holds.
        split = launch.index(SCRIPT) + 1
        listen = "unix:#{File.join(folder, "listener")}"
        [*launch.first(split), *without_listen(launch.drop(split)), "--listen", listen, "--workers", @workers.to_s,
         "--refork", "manual"]
      end

      # Addresses add up; a rackup file behind -- must stay the last.
      def without_listen(argv)
        flags = Config::Flags.parse(argv)
        kept = flags.given.reject { |one| one.setting.name == :listen }
        positional, flagged = kept.partition { |one| one.flag.nil? }
        [*flagged, *positional].flat_map(&:argv)
      end

      # A process that has left the group (setsid) is not killed.
      def kill_all
        Process.kill("KILL", -@pid)
        @waiter.join
      rescue Errno::ESRCH
        nil
      end
    end
  end
end
