# frozen_string_literal: true

require "pando/cluster/open_files"
require "pando/line_writer"

module Pando
  module Cluster
    # A short-lived process that finds something out for the monitor, which must not block: a configuration file or a
    # debugger may hang. The process writes its answer to one descriptor and its errors to standard error. Both are read
    # up to a limit, and the process is killed when its time is over.
    # Owned by Examiner, Upgrade::Probe or Server::Renewal, in the monitor, whose loop calls {#proceed} at each turn.
    class HelperProcess
      # Stands for the answer's pipe in the list of descriptors.
      ANSWER = :answer
      ANSWER_BYTES = 65_536
      ERROR_BYTES = 16_384
      CHUNK = 16_384
      # Seconds that the process may take to die of SIGKILL.
      KILL_TIMEOUT = 1.0

      # @return [Float] on Sys.now, when the process is killed
      attr_reader :deadline
      # @return [Sys::Ending, nil] nil while the process runs
      attr_reader :ending

      # @param descriptors [Array<#fileno, Integer, ANSWER>] what the process finds open from descriptor 3 on
      # @raise [SystemCallError] the process cannot be started
      def initialize(poller, command, environment, timeout, descriptors: [ANSWER], answer_bytes: ANSWER_BYTES)
        @poller = poller
        @deadline = Sys.now + timeout
        @limits = [answer_bytes, ERROR_BYTES]
        @texts = [+"".b, +"".b]
        start(command, environment.map { |name, text| "#{name}=#{text}" }, descriptors)
      end

      # @return [Boolean] whether the process has ended
      def proceed(now = Sys.now)
        return true if ending

        kill_late if now >= deadline
        read
        @ending = @process.reap or return false
        read # what it wrote just before its end
        close
        true
      end

      def late? = !!@late

      def answer = @texts.first[0, @limits.first]

      def errors = @texts.last[0, @limits.last].force_encoding(Encoding::UTF_8).scrub("?")

      # Kills the process: its answer is not needed any more.
      def abandon
        return if ending

        @process.signal("KILL")
        @ending = wait_for_end || Sys::Ending.new(:unknown)
        close
      end

      private

      def start(command, environment, descriptors)
        @pipes = []
        theirs = 2.times.map { IO.pipe.then { |ours, other| (@pipes << ours) && other } }
        given = descriptors.map { |one| one == ANSWER ? theirs.first : one }
        pid = Sys.spawn(command, environment, [theirs.last, *given], 2, OpenFiles.given)
        @process = Sys::Pidfd.new(pid)
        [@process, *@pipes].each { |io| @poller.add(io, [:helper, self]) }
      rescue SystemCallError
        Process.kill(:KILL, pid) if pid # it cannot be watched, and is reaped as an orphan
        close
        raise
      ensure
        theirs&.each(&:close)
      end

      def kill_late
        @late = true
        @deadline = Sys.now + KILL_TIMEOUT
        @process.signal("KILL")
      end

      # Bytes beyond the limit are dropped, so that their writer need not wait.
      def read
        @pipes.zip(@texts, @limits) do |pipe, text, limit|
          while (chunk = pipe.read_nonblock(CHUNK, exception: false)).is_a?(String)
            text << chunk if text.bytesize < limit
          end
          @poller.remove(pipe) if chunk.nil? # a closed pipe would wake the poller up again and again
        end
      end

      # The monitor's poller would also wake up for other children.
      def wait_for_end
        poller = Sys::Poller.new.add(@process, true)
        deadline = Sys.now + KILL_TIMEOUT
        poller.wait(deadline - Sys.now) until (ending = @process.reap) || Sys.now >= deadline
        ending
      ensure
        poller&.close
      end

      def close
        [@process, *@pipes].compact.each do |io|
          @poller.remove(io)
          io.close
        end
      end
    end

    # Finds out where a process that no longer answers is stuck. A helper process does it, because a debugger takes its
    # time and the files of a stuck process may be stuck as well. Owned by the monitor.
    class Examiner
      # Seconds for one examination.
      TIMEOUT = 10.0
      # Variables that are meant for the application, and not for the helper.
      UNSET = %w[RUBYOPT RUBYLIB LD_PRELOAD DEBUGINFOD_URLS].freeze

      def initialize(poller, command)
        @poller = poller
        @command = command
        @running = {}
      end

      # @yieldparam text [String, nil] later, or at once when nothing can be found out
      def examine(pid, &finish)
        return yield(nil) unless @command

        @running[HelperProcess.new(@poller, [*@command, pid.to_s], ENV.to_h.except(*UNSET), TIMEOUT)] = finish
      rescue SystemCallError
        yield nil
      end

      def proceed(now = Sys.now)
        @running.keys.each { |helper| finish(helper) if helper.proceed(now) } # rubocop:disable Style/HashEachMethods -- it is changed meanwhile
      end

      def due = @running.keys.map(&:deadline).min

      private

      def finish(helper)
        LineWriter.new($stderr).write(helper.errors) unless helper.errors.empty?
        text = helper.answer.force_encoding(Encoding::UTF_8).scrub("?")
        @running.delete(helper).call(text.empty? ? nil : text)
      end
    end
  end
end
