# frozen_string_literal: true

require "socket"
require "pando/sys"
require "pando/doctor/subject/wire"

module Pando
  module Doctor
    # Sends one worker requests and questions (see Subject::Handler). Runs in the command's process.
    class Conversation
      # The outcome of a request: its status, nil if the connection was closed without one. If no answer came in time:
      # the worker's stack, `stuck_in` (:sleep, :lock, nil for anything else), and the pid that was killed.
      Answer = Struct.new(:status, :stack, :stuck_in, :killed, keyword_init: true) do
        def stuck? = !stack.nil?
      end

      CHUNK = 65_536
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
        socket.write(request.to_http)
        head = read(socket, deadline)
        return stuck unless head

        Answer.new(status: head[%r{\AHTTP/1\.\d (\d{3})}, 1]&.to_i)
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

      # @return [String, nil] the beginning of the answer, which is read to its end; nil: not in time
      def read(socket, deadline)
        head = +""
        loop do
          left = deadline - Sys.now
          return if left <= 0 || !socket.wait_readable(left)

          part = socket.readpartial(CHUNK)
          head << part if head.bytesize < 100
        end
      rescue EOFError, Errno::ECONNRESET
        head || ""
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
        File.read("/proc/#{@actor.pid}/syscall").to_i == FUTEX.fetch(RbConfig::CONFIG["host_cpu"], FUTEX["x86_64"])
      rescue SystemCallError
        false
      end
    end
  end
end
