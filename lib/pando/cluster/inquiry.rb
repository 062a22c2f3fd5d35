# frozen_string_literal: true

require "pando/sys"

module Pando
  module Cluster
    # A short-lived process that finds something out for the monitor, which must not wait for it: what it
    # writes to descriptor 3 is the answer, what it complains of on its standard error is kept as well; both
    # up to a limit, and not for longer than its time.
    #
    # Owned by the monitor; polled at each turn of its loop.
    #
    # @api private
    class Inquiry
      ANSWER_BYTES = 65_536
      COMPLAINT_BYTES = 8192
      CHUNK = 16_384
      # Seconds that one may take to die of SIGKILL.
      LAST_BREATH = 1.0

      # Seconds on Sys.now by which it is killed.
      attr_reader :deadline
      # @return [Sys::Ending, nil] nil while it runs
      attr_reader :ending

      # @param command [Array<String>] @param environment [Hash{String => String}]
      # @param patience [Float] seconds
      # @raise [SystemCallError] the kernel does not give what it takes
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
        listen # its last words
        close
        true
      end

      # @return [Boolean] its time was over
      def late? = !!@late

      # @return [String]
      def answer = text(@answers, ANSWER_BYTES)
      def complaint = text(@complaints, COMPLAINT_BYTES)

      # Nobody wants to know any more.
      def abandon
        return if ending

        @process.signal("KILL")
        @ending = last_breath || Sys::Ending.new(:unknown)
        close
      end

      private

      # Another child's end wakes the poller up, too.
      def last_breath
        poller = Sys::Poller.new.add(@process, true)
        deadline = Sys.now + LAST_BREATH
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

      # What is beyond the limit is read and dropped: its writer must not wait for us.
      def listen
        { @answers => ANSWER_BYTES, @complaints => COMPLAINT_BYTES }.each do |pipe, limit|
          text = @texts[pipe] ||= +"".b
          while (chunk = pipe.read_nonblock(CHUNK, exception: false)).is_a?(String)
            text << chunk if text.bytesize < limit
          end
          @poller.remove(pipe) if chunk.nil? # its end would wake us for ever
        end
      end

      def text(pipe, limit) = @texts.fetch(pipe)[0, limit].force_encoding(Encoding::UTF_8).scrub("?")

      def close
        watched.each { |io| @poller.remove(io) }
        watched.each(&:close)
      end
    end
  end
end
