# frozen_string_literal: true

require "fileutils"
require "json"
require "socket"
require "tmpdir"
require "pando/doctor/subject/wire"
require "pando/errors"
require "pando/server/launch"
require "pando/sys"

module Pando
  module Doctor
    # The application could not be examined; the message says why. The command exits 2.
    class NotExamined < Error; end

    # The server that the doctor starts, questions, reforks and stops: a real monitor, mold and workers, on UNIX sockets
    # in a temporary folder. It collects the reports (facts) that these processes send over their wire; a thread reads
    # them, so that no process has to wait until it is heard. Owned by the command's process.
    class Stage
      # An expected report did not come in time, or no process is left to send it.
      class Silence < StandardError; end

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
      LONGEST_REPORT = 1 << 20 # bytes of a datagram
      LAST_REPORT = 5.0 # seconds
      LIVENESS_INTERVAL = 0.1 # seconds between two looks whether the server is still alive
      ENDED = %w[worker.exited worker.lost worker.killed worker.leaving].freeze
      # Ends of a refork. If it had begun before it was refused, `refork.failed` is its end.
      REFORKED = %w[refork.finished refork.refused refork.failed monitor.stopped].freeze
      # Refusals that waiting does not change.
      LASTING = /\Areforking is switched off|made each of them unsafe to fork/
      RETRY_AFTER = 0.02 # seconds

      attr_reader :folder
      # @return [Array<Hash>] the reports in the order of their arrival
      attr_reader :facts

      # @param config [Config] @param patience [Float] seconds for any one answer
      # @param trace [Boolean] find the lines that make native threads and descriptors; slow
      def initialize(config, patience:, workers: WORKERS, trace: false)
        @config = config
        @patience = patience
        @workers = workers
        @trace = trace
        @facts = []
        @lock = Mutex.new
        @news = ConditionVariable.new
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
        @folder = Dir.mktmpdir("pando-doctor", ("/tmp" if Dir.tmpdir.bytesize > LONGEST_FOLDER))
        listen
        @pid = Process.spawn(environment, *command, chdir: @config.directory, in: File::NULL, pgroup: true,
                                                    out: output_path, err: %i[child out])
        @waiter = Process.detach(@pid)
        await(@config.boot_timeout + @patience) { |fact| fact[:event] == "generation.current" && fact }
      rescue Silence
        raise NotExamined, failure(ending || "the application was not ready in time")
      end

      # @return [Array<Actor>] the ready workers of a generation, by slot
      def workers(generation)
        ended = reports(:event).select { |fact| ENDED.include?(fact[:event]) }.map { |fact| fact[:pid] }
        reports(:event).select { |fact| fact[:event] == "worker.ready" && fact[:generation] == generation }
                       .reject { |fact| ended.include?(fact[:pid]) }
                       .map { |fact| Actor.new("worker", fact[:slot], generation, fact[:pid]) }
                       .sort_by(&:slot)
      end

      def mold(generation)
        ready = reports(:event).reverse.find { |fact| fact[:event] == "mold.ready" && fact[:generation] == generation }
        ready && Actor.new("mold", nil, generation, ready[:pid])
      end

      # @param kind [Symbol] :event, :snapshot, :record, :origin, ...
      def reports(kind) = @lock.synchronize { facts.select { |fact| fact.key?(kind) } }

      # The index of the next fact.
      def mark = @lock.synchronize { facts.size }

      # Waits for a fact.
      # @param from [Integer] earlier facts do not count, see {#mark}
      # @yieldparam fact [Hash] @yieldreturn [Object, nil] the result; nil: this is not the fact
      # @raise [Silence]
      def await(seconds, from = 0)
        deadline = Sys.now + seconds
        @lock.synchronize do
          loop do
            while (fact = facts[from])
              found = yield fact
              return found if found

              from += 1
            end
            wait(deadline)
          end
        end
      end

      def talk_to(actor, patience = @patience) = Conversation.new(self, actor, patience)

      # Reforks and waits for the next generation. Right after a rollout the server refuses for a moment.
      # @return [Integer, nil] its number; nil: there will be none, and a fact says why
      def refork
        deadline = Sys.now + REFORK_WITHIN + @patience
        until (done = try_refork(deadline))[:event] != "refork.refused" || lasting?(done)
          IO.select(nil, nil, nil, RETRY_AFTER)
        end
        done[:generation] if done[:event] == "refork.finished"
      rescue Silence, Errno::ESRCH
        nil
      end

      # Asks the server to stop, so that at_exit handlers and finalizers run.
      def stop
        return unless @waiter&.alive?

        Process.kill("TERM", @pid)
        hear_all if @waiter.join(@config.stop_timeout + STOP_GRACE)
      rescue Errno::ESRCH
        nil
      end

      def close
        kill_all if @waiter
        @listener&.kill&.join
        @socket&.close
        FileUtils.rm_rf(folder) if folder
      end

      private

      # @return [String, nil] nil: the server lives
      def ending
        return if @waiter.alive?

        status = @waiter.value
        outcome = status.exited? ? [:exited, status.exitstatus] : [:killed, status.termsig]
        "its server ended: #{Sys::Ending.new(*outcome)}"
      end

      # Why there is nothing to examine, and the end of the server's and the application's output.
      def failure(summary)
        refused = reports(:refused).first
        return refused[:refused] if refused

        events = reports(:event)
        stopped = events.find { |fact| fact[:event] == "monitor.stopping" }
        ended = events.reverse.find { |fact| fact[:event] == "generation.discarded" }
        reason = ended&.fetch(:reason, nil) || stopped&.fetch(:reason, nil) || summary
        output = File.read(output_path, mode: "rb").scrub
        [reason, (output[-TAIL..] || output).strip].reject(&:empty?).join("\n")
      end

      def listen
        @socket = Socket.new(:UNIX, :DGRAM)
        @socket.bind(Addrinfo.unix(File.join(folder, Subject::Wire::NAME)))
        @listener = Thread.new { loop { hear(@socket.recv(LONGEST_REPORT)) } }
      end

      def wait(deadline)
        left = deadline - Sys.now
        raise Silence if left <= 0 || !(@waiter.alive? || @stopped || @socket.wait_readable(0))

        @news.wait(@lock, [left, LIVENESS_INTERVAL].min)
      end

      def hear(text)
        fact = JSON.parse(text, symbolize_names: true)
        fact = JSON.parse(File.read(fact[:file], encoding: Encoding::UTF_8), symbolize_names: true) if fact.key?(:file)
        @lock.synchronize do
          facts << fact
          @news.broadcast
        end
      rescue JSON::ParserError, SystemCallError
        nil
      end

      # Called when all processes have ended: once this datagram has arrived, all earlier ones have.
      def hear_all
        @stopped = true
        Subject::Wire.new(folder).tell(end: Process.pid)
        await(LAST_REPORT) { |fact| fact.key?(:end) }
      rescue Silence
        nil
      end

      # Whether waiting is useless: a worker has refused to be forked, for instance.
      def lasting?(refused) = LASTING.match?(refused[:reason]) || refused.key?(:source)

      def try_refork(deadline)
        from = mark
        Process.kill("USR2", @pid)
        await(deadline - Sys.now, from) { |fact| fact if REFORKED.include?(fact[:event]) && !began?(fact) }
      end

      def began?(fact) = fact[:event] == "refork.refused" && fact.key?(:generation)

      def output_path = File.join(folder, "output")

      def environment
        settings = { folder: folder, patience: @patience, trace: @trace, workers: @workers,
                     threads: Config::Threads.most(@config) > 1 }
        { "PANDO_DOCTOR" => JSON.generate(settings) }
      end

      def command
        Server::Launch.command(@config).map { |word| word == Server::Launch::SCRIPT ? SCRIPT : word }
      end

      # A process that has left the group (setsid) is not killed.
      def kill_all
        Process.kill("KILL", -@pid)
        @waiter.join
      rescue Errno::ESRCH
        nil
      end
    end

    # Sends one worker requests and questions (see Subject::Handler). Runs in the command's process.
    class Conversation
      # The outcome of a request: its status, nil if the connection was closed without one, and the location of a
      # redirection. If no answer came in time: the worker's stack, `stuck_in` (:sleep, :lock, nil for anything else),
      # and the pid that was killed.
      Answer = Struct.new(:status, :location, :stack, :stuck_in, :killed, keyword_init: true) do
        def stuck? = !stack.nil?
      end

      CHUNK = 65_536
      LONGEST_HEAD = 16_384 # bytes; of a longer one, only the beginning is read
      # Heads before the final response's, such as early hints. After 101 the connection is no longer HTTP.
      INTERIM = %r{\A(?:HTTP/1\.\d 1(?!01)\d\d.*?\r\n\r\n)+}m
      STACK_WITHIN = 1.0 # seconds
      C_METHOD = /\Ain /
      # Numbers of the system call futex(2), in which locks wait, by CPU.
      FUTEX = { "x86_64" => 202, "aarch64" => 98 }.freeze

      def initialize(stage, actor, patience)
        @stage = stage
        @actor = actor
        @patience = patience
        @path = File.join(stage.folder, "#{actor.slot}.#{actor.generation}.#{actor.pid}")
      end

      def request(request)
        deadline = Sys.now + @patience
        socket = UNIXSocket.new("#{@path}.http")
        head = read(socket, deadline) if write(socket, request.to_http, deadline)
        return stuck unless head

        Answer.new(status: head[%r{\AHTTP/1\.\d (\d{3})}, 1]&.to_i, location: head[/\r\nlocation:[ \t]*(\S+)/i, 1])
      rescue SystemCallError
        Answer.new
      ensure
        socket&.close
      end

      # @param question [String] see Subject::Handler
      # @yieldparam fact [Hash] @yieldreturn whether it is the answer
      # @return [Hash, nil] nil: no answer in time
      def ask(question)
        from = @stage.mark
        socket = Socket.new(:UNIX, :DGRAM)
        socket.connect(Addrinfo.unix("#{@path}.ask"))
        socket.send(question, 0)
        @stage.await(@patience, from) { |fact| fact if fact[:pid] == @actor.pid && yield(fact) }
      rescue SystemCallError, Stage::Silence
        nil
      ensure
        socket&.close
      end

      private

      # @return [Boolean] whether all of it was sent in time: a worker may leave a large body unread
      def write(socket, text, deadline)
        until text.empty?
          case sent = socket.write_nonblock(text, exception: false)
          when Integer then text = text.byteslice(sent..)
          else return false unless in_time?(deadline) { |left| socket.wait_writable(left) }
          end
        end
        true
      end

      # @return [String, nil] the head of the final response, which is read to its end; nil: not in time
      def read(socket, deadline)
        head = String.new
        loop do
          return unless in_time?(deadline) { |left| socket.wait_readable(left) }

          part = socket.readpartial(CHUNK)
          head << part if head.bytesize < LONGEST_HEAD
          head.sub!(INTERIM, "")
        end
      rescue EOFError, Errno::ECONNRESET
        head.to_s.partition("\r\n\r\n").first
      end

      def in_time?(deadline)
        left = deadline - Sys.now
        left.positive? && yield(left)
      end

      # The worker is killed, and its successor serves the other requests.
      def stuck
        lock = lock?
        frames = frames()
        stuck_in = slept?(frames) ? :sleep : (:lock if lock)
        Answer.new(stack: frames.grep_v(C_METHOD), stuck_in: stuck_in, killed: @actor.pid).tap { kill }
      end

      # A lock with a time limit sleeps too, but inside another method.
      def slept?(frames) = frames.take_while { |line| C_METHOD.match?(line) } == ["in sleep"]

      def kill
        Process.kill("KILL", @actor.pid)
      rescue Errno::ESRCH
        nil # the signal for its stack has woken it, and it has ended
      end

      # @return [Array<String>] "file:line", or "in sleep" for a method of C, the innermost first
      def frames
        File.open("#{@path}.place", File::RDONLY | File::NONBLOCK) do |place|
          Process.kill(PLACE_SIGNAL, @actor.pid)
          text = +""
          text << place.readpartial(CHUNK) until text.end_with?("\n\n") || !place.wait_readable(STACK_WITHIN)
          text.lines.map(&:chomp).reject(&:empty?)
        end
      rescue SystemCallError, EOFError
        []
      end

      def lock?
        File.read("/proc/#{@actor.pid}/syscall").to_i == FUTEX[RbConfig::CONFIG["host_cpu"]]
      rescue SystemCallError
        false
      end
    end
  end
end
