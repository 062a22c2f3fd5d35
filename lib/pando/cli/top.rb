# frozen_string_literal: true

require "pando/cli/control_command"
require "pando/cli/status_report"

module Pando
  module CLI
    # `pando top`: the running server on the whole screen, each second, with keys that steer it. Where stdout is no
    # terminal, or with --once, it writes plain text.
    class Top < ControlCommand
      ONCE = Switch.new(name: :once, flags: %w[--once],
                        help: "With `top`: show one second of the server as plain text, and end.").freeze

      # A terminal that is readable so often in a row, and gives nothing, has hung up.
      EMPTY = 100

      def self.switches = [*super, ONCE]

      private

      def perform
        require "pando/cli/top/feed"
        require "pando/cli/top/board"
        @feed = Feed.new(path, patience: patience)
        return once if flags[:once]

        screen? ? full_screen : plain
      end

      # Escape codes would be noise on a dumb terminal.
      def screen? = terminal.out.tty? && $stdin.tty? && terminal.env["TERM"] != "dumb"

      # Rates need two answers.
      def once
        @feed.ask
        sleep(Feed::INTERVAL)
        write(@feed.ask(everything: true))
        CLI::OK
      end

      # A block each second, until it is interrupted. A server that is gone is waited for.
      def plain
        @feed.ask
        @feed.start
        events = []
        loop do
          @feed.bell.wait_readable
          @feed.messages.each do |kind, *facts|
            case kind
            when :event then events = [*events, facts.first].last(100)
            when :gone then say("#{Time.now.strftime("%H:%M:%S")} #{facts.first}")
            when :status
              write([kind, *facts], events)
              say("\n")
              events = []
            end
          end
        end
      ensure
        @feed.stop
      end

      def write(message, events = [])
        board = Board.new(*message.drop(1))
        say([Time.now.strftime("%H:%M:%S"), *board.lines(events: events).map(&:text)].join("\n"))
      end

      def say(text)
        terminal.out.puts(text)
        terminal.out.flush
      end

      def full_screen
        require "pando/cli/top/controls"
        require "pando/cli/top/screen"
        Screen.load
        controls = Controls.new(@feed)
        controls.receive([@feed.ask]) # a missing server is reported before the screen is taken
        previous = trap("WINCH") { resized }
        Screen.open(colored: terminal.env["NO_COLOR"].to_s.empty?) do |screen|
          @feed.start
          watch(screen, controls)
        end
        CLI::OK
      ensure
        @feed.stop
        trap("WINCH", previous || "DEFAULT")
      end

      def resized
        @resized = true
        @feed.ring
      end

      def watch(screen, controls)
        empty = 0
        until controls.over? || empty > EMPTY
          fit(screen)
          screen.draw { |columns, lines| controls.lines(columns, lines) }
          ready, = IO.select([$stdin, @feed.bell])
          controls.receive(@feed.messages)
          pressed = screen.keys
          pressed.each { |key| controls.press(key) }
          empty = ready.include?($stdin) && pressed.empty? ? empty + 1 : 0
        end
      end

      def fit(screen)
        return unless @resized

        @resized = false
        screen.resize
      end
    end
  end
end
