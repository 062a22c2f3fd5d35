# frozen_string_literal: true

require "pando/cli/control_client"
require "pando/cli/top/measurements"
require "pando/events/catalogue"
require "pando/telemetry/text_format"

module Pando
  module CLI
    class Top
      # The connections of `pando top` to the server: one asks for the status each second, one follows the events, and
      # each command has its own. All that arrives is a message in a queue, which only the main thread takes from, so
      # that nothing else is shared. A server that has gone is tried again each second.
      #
      # Messages: [:status, records, results], [:gone, reason], [:event, text, pairs], and of a command
      # [:progress, number, text], [:line, number, text] of what it shows, [:outcome, number, text, succeeded].
      class Feed
        # Seconds between two answers, and for each.
        INTERVAL = 1.0
        ANSWER = 10.0
        # Commands that may run at once.
        COMMANDS = 8
        # Messages that may wait.
        BACKLOG = 1000
        FAILURES = [UsageError, ControlClient::Refused, ControlClient::Silent, SystemCallError].freeze

        # @return [IO] that is readable when a message has come
        attr_reader :bell

        # @param patience [Float] seconds for a command
        def initialize(path, patience: 300.0, measurements: Measurements.new)
          @path = path
          @patience = patience
          @measurements = measurements
          @inbox = SizedQueue.new(BACKLOG)
          @bell, @ringer = IO.pipe
          @commands = {}
          @number = 0
        end

        def ask(everything: false)
          records = []
          ControlClient.new(@path).ask!("status", timeout: ANSWER) do |word, pairs|
            records << [word, Cluster::Control::Line.typed(pairs)]
          end

          [:status, records, @measurements.take(records, everything: everything)]
        end

        def start
          @threads = [thread { again { send_message(ask) } }, thread { again { follow } }]
        end

        def stop
          [*@threads, *@commands.values].each(&:kill).each(&:join)
        end

        def messages
          @bell.read_nonblock(BACKLOG, exception: false)
          Array.new(@inbox.size) { @inbox.pop }
        end

        # Sends a command. Its progress and its outcome arrive as messages.
        # @return [Integer, nil] its number in the messages; nil: too many run
        def command(word, pairs = {})
          @commands.select! { |_, thread| thread.alive? }
          return if @commands.size >= COMMANDS

          (@number += 1).tap { |number| @commands[number] = thread { carry_out(number, word, pairs) } }
        end

        # Wakes the main thread, also from a signal's handler.
        def ring = @ringer.write_nonblock(".", exception: false)

        private

        # An error in it ends the command, rather than write over the screen.
        def thread(&work)
          Thread.new do
            Thread.current.report_on_exception = false
            Thread.current.abort_on_exception = true
            work.call
          end
        end

        # A server that is gone leaves a client that ends at once, so the pause is always made.
        def again
          loop do
            began = now
            begin
              yield
            rescue *FAILURES => e
              send_message([:gone, e.message])
            end
            sleep([INTERVAL - (now - began), 0.1].max)
          end
        end

        # The status tells that the server is gone.
        def follow
          format = Telemetry::TextFormat.new
          ControlClient.new(@path).ask("events") do |word, pairs|
            next send_message([:event, "#{pairs["count"]} events were left out", {}]) if word == "missed"
            next unless word == "event"

            line = format.format(Cluster::Control::Line.event(pairs)).lines.first.chomp
            facts = Cluster::Control::Line.typed(pairs)
            send_message([:event, line.sub(/\A\S+T([\d:]{8})\S* pando/, "\\1"), facts])
          end
        rescue UsageError, ControlClient::Silent
          nil
        end

        def carry_out(number, word, pairs)
          said = ControlClient.new(@path).ask!(word, pairs, timeout: @patience) do |kind, facts|
            next send_message([:line, number, facts["text"]]) if kind == "line"

            text = kind == "waiting" ? ["waiting", facts["reason"]] : facts.values_at("name", "reason").compact
            send_message([:progress, number, text.join(": ")])
          end
          send_message([:outcome, number, said["text"], true])
        rescue *FAILURES => e
          send_message([:outcome, number, e.message, false])
        end

        def send_message(message)
          @inbox.push(message)
          ring
        end

        def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)
      end
    end
  end
end
