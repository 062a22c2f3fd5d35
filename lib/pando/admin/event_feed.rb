# frozen_string_literal: true

require "pando/admin/monitor"
require "pando/cluster/control/line"
require "pando/events/catalogue"
require "pando/telemetry/json_format"

module Pando
  module Admin
    # Follows the monitor's events, and passes them on to the clients of /events as server-sent events. One thread of
    # the admin process listens to the monitor, however many clients there are. It goes on after the last event that the
    # history knows, so that one that came while this process was away is not missing there.
    class EventFeed
      # Clients at a time.
      FOLLOWERS = 16
      # Events that may wait for a slow client: beyond that it misses some.
      WAITING = 256
      # Seconds until a lost connection is made again.
      PAUSE = 0.5

      # Seconds of silence after which a comment is sent: that shows whether the client is still there.
      HEARTBEAT = 10.0
      COMMENT = ": still here\n\n"

      # @param monitor [Monitor] @param history [History] that keeps the last events
      # @yieldparam name [String] of each event
      def initialize(monitor, history, &heard)
        @heard = heard
        @monitor = monitor
        @history = history
        @lock = Mutex.new
        @followers = []
        @format = Telemetry::JSONFormat.new
        Thread.new { follow }
      end

      # @param prefix [String] of the names that the client wants
      # @param every [Float] seconds
      # @yieldreturn [String] what is sent so often beside the events
      # @return [Stream, nil] the body of a response; nil: there are too many
      def stream(prefix, every: HEARTBEAT, &pulse)
        pulse ||= -> { COMMENT }
        stream = Stream.new(prefix, every, pulse) { |one| @lock.synchronize { @followers.delete(one) } }
        @lock.synchronize do
          return if @followers.size >= FOLLOWERS

          @followers << stream
        end
        stream
      end

      private

      def follow
        loop do
          @monitor.follow(@history.known) { |word, pairs| hear(word, pairs) }
        rescue CLI::ControlClient::Silent, SystemCallError
          nil # the monitor closes the connection of a client that reads too slowly
        ensure
          sleep(PAUSE)
        end
      end

      def hear(word, pairs)
        case word
        when "following" then @history.begin_after(pairs["number"].to_i)
        when "missed" then each { |one| one.missed(pairs["count"].to_i) }
        when "event"
          event = Cluster::Control::Line.event(pairs)
          text = @format.format(event)
          @history.event(event.name, text.chomp, pairs["number"].to_i)
          each { |one| one.push(event.name, "data: #{text}\n") }
          @heard&.call(event.name)
        end
      end

      def each(&block) = @lock.synchronize { @followers.dup }.each(&block)

      # The body of one response: it goes on until the client leaves.
      class Stream
        # @param every [Float] seconds @param pulse [#call] gives the text that is sent so often
        # @yieldparam stream [Stream] that has ended
        def initialize(prefix, every, pulse, &ended)
          @prefix = prefix
          @every = every
          @pulse = pulse
          @ended = ended
          @lock = Mutex.new
          @news = ConditionVariable.new
          @waiting = []
          @missed = 0
        end

        def push(name, text)
          return unless name.start_with?(@prefix)

          @lock.synchronize do
            @waiting.size < WAITING ? @waiting << text : @missed += 1
            @news.signal
          end
        end

        def missed(count) = @lock.synchronize { @missed += count }

        def each
          yield "retry: 1000\n: following\n\n"
          loop do
            yield @pulse.call
            due = Sys.now + @every
            while (left = due - Sys.now).positive?
              text = take(left)
              yield text unless text.empty?
            end
          end
        end

        def close = @ended.call(self)

        private

        def take(seconds)
          @lock.synchronize do
            @news.wait(@lock, seconds) if @waiting.empty?
            text = @waiting.join
            text << "event: missed\ndata: {\"count\":#{@missed}}\n\n" if @missed.positive?
            @missed = 0
            @waiting.clear
            text
          end
        end
      end
    end
  end
end
