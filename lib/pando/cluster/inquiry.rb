# frozen_string_literal: true

require "pando/sys"

module Pando
  module Cluster
    # A short-lived process that finds something out for the monitor, which must not wait for it. It answers on
    # descriptor 3. Its standard error is kept as well; both up to a limit. It is killed when its time is up.
    #
    # Owned by the monitor; polled at each turn of its loop.
    #
    # @api private
    class Inquiry
      ANSWER_BYTES = 65_536
      COMPLAINT_BYTES = 8192
      CHUNK = 16_384
      # Seconds that it may take to die of SIGKILL.
      DEATH = 1.0

      # Seconds on Sys.now by which it is killed.
      attr_reader :deadline
      # @return [Sys::Ending, nil] nil while it runs
      attr_reader :ending

      # @param command [Array<String>] @param environment [Hash{String => String}]
      # @param patience [Float] seconds
      # @raise [SystemCallError] the kernel refuses the process or its pipes
      def initialize(poller, command, environment, patience)
        @poller = poller
        @deadline = Sys.now + patience
        @texts = {}
        start(command, environment.map { |name, text| "#{name}=#{text}" })
      end

      # @return [Boolean] whether it is over
      def proceed(now = Sys.now)
        return true if ending

        end_late if now >= deadline
        listen
        @ending = @process.reap or return false
        listen # for the rest
        close
        true
      end

      # @return [Boolean] whether its time was up
      def late? = !!@late

      # @return [String]
      def answer = text(@answers, ANSWER_BYTES)
      def complaint = text(@complaints, COMPLAINT_BYTES)

      # The answer is no longer wanted.
      def abandon
        return if ending

        @process.signal("KILL")
        @ending = await_end || Sys::Ending.new(:unknown)
        close
      end

      private

      # The end of another child wakes the poller up, too.
      def await_end
        poller = Sys::Poller.new.add(@process, true)
        deadline = Sys.now + DEATH
        poller.wait(deadline - Sys.now) until (ending = @process.reap) || Sys.now >= deadline
        ending
      ensure
        poller&.close
      end

      def start(command, environment)
        @complaints, their_complaints = IO.pipe
        @answers, their_answers = IO.pipe
        pid = Sys.spawn(command, environment, [their_complaints, their_answers], 2)
        @process = Sys::Pidfd.new(pid)
        watched.each { |io| @poller.add(io, [:inquiry, self]) }
      rescue SystemCallError
        [@answers, @complaints].compact.each(&:close)
        raise
      ensure
        [their_answers, their_complaints].compact.each(&:close)
      end

      def watched = [@process, @answers, @complaints]

      def end_late
        @late = true
        @deadline = Sys.now + 1
        @process.signal("KILL")
      end

      # Reads and drops what is beyond the limit, so that the writer never blocks.
      def listen
        { @answers => ANSWER_BYTES, @complaints => COMPLAINT_BYTES }.each do |pipe, limit|
          text = @texts[pipe] ||= +"".b
          while (chunk = pipe.read_nonblock(CHUNK, exception: false)).is_a?(String)
            text << chunk if text.bytesize < limit
          end
          @poller.remove(pipe) if chunk.nil? # a closed pipe stays readable
        end
      end

      def text(pipe, limit) = @texts.fetch(pipe)[0, limit].force_encoding(Encoding::UTF_8).scrub("?")

      def close
        watched.each { |io| @poller.remove(io) }
        watched.each(&:close)
      end
    end

    # Finds out where a process stands that no longer answers. Another process does so, since a debugger takes its time
    # and the files of a stuck process may be stuck as well.
    #
    # Owned by the monitor.
    #
    # @api private
    class Examiner
      # Seconds for one examination.
      PATIENCE = 10.0
      # Variables of the application that could harm the examining process.
      UNSET = %w[RUBYOPT RUBYLIB LD_PRELOAD DEBUGINFOD_URLS].freeze

      # @param command [Array<String>, nil] see Payload#examination_command
      def initialize(poller, command)
        @poller = poller
        @command = command
        @running = {}
      end

      # @yieldparam text [String, nil] later, or at once when nothing can be found out
      def examine(pid, &finish)
        return yield nil unless @command

        @running[Inquiry.new(@poller, [*@command, pid.to_s], ENV.to_h.except(*UNSET), PATIENCE)] = finish
      rescue SystemCallError
        yield nil
      end

      # Called at each turn of the monitor's loop.
      def proceed(now = Sys.now)
        over = @running.select { |inquiry, _| inquiry.proceed(now) }
        over.each { |inquiry, finish| @running.delete(inquiry) && finish.call(text(inquiry)) }
      end

      def due = @running.each_key.map(&:deadline).min

      private

      def text(inquiry) = [inquiry.answer, inquiry.complaint].find { |text| !text.empty? }
    end
  end
end
