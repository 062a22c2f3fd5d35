# frozen_string_literal: true

require "io/console"

module Pando
  module CLI
    class Top
      # The terminal of `pando top`, through the gem curses, which sends only what has changed, knows each terminal's
      # escape codes, and gives the terminal back as it was. Owned by Top, used on the main thread.
      class Screen
        KEYS = %i[UP DOWN PPAGE NPAGE ENTER].freeze
        NAMES = { UP: :up, DOWN: :down, PPAGE: :page_up, NPAGE: :page_down, ENTER: :enter }.freeze
        # Colours by style; without colours the attribute tells.
        COLORS = { title: :COLOR_CYAN, head: :COLOR_GREEN, warning: :COLOR_RED }.freeze
        # Milliseconds in which an arrow key's bytes arrive after its escape character.
        ESCAPE = 50

        # @raise [UsageError] the gem is missing
        def self.load
          require "curses"
        rescue LoadError
          raise UsageError, "pando top needs the gem curses on a terminal: gem install curses, or `gem \"curses\"` " \
                            "in the Gemfile if you use bundle exec. Without it, pando top --once shows plain text"
        end

        # Whatever ends the block, the terminal is given back.
        def self.open(colored:)
          Curses.ESCDELAY = ESCAPE
          Curses.init_screen
          yield new(colored)
        ensure
          Curses.close_screen if defined?(Curses) && !Curses.closed?
        end

        def initialize(colored)
          Curses.cbreak
          Curses.noecho
          Curses.curs_set(0)
          @window = Curses.stdscr
          @window.keypad(true)
          @window.timeout = 0
          @attributes = { title: Curses::A_BOLD, head: Curses::A_BOLD, warning: Curses::A_BOLD, dim: Curses::A_DIM,
                          selected: Curses::A_REVERSE }
          @names = KEYS.to_h { |name| [Curses.const_get("KEY_#{name}"), NAMES[name]] }
          color if colored && Curses.has_colors?
        end

        # The terminal has another size.
        def resize
          lines, columns = IO.console.winsize
          Curses.resizeterm(lines, columns) if lines.positive? && columns.positive?
          Curses.clear
        end

        def draw
          lines = yield(Curses.cols, Curses.lines)
          @window.erase
          lines.first(Curses.lines).each_with_index do |line, at|
            @window.setpos(at, 0)
            @window.attrset(@attributes.fetch(line.style, Curses::A_NORMAL))
            @window.addstr(line.style == :selected ? line.text.ljust(Curses.cols) : line.text)
          end
          @window.refresh
        end

        # @return [Array<String, Symbol>] those that have been pressed
        def keys
          keys = []
          while (key = @window.getch)
            keys << named(key)
          end
          keys.compact
        end

        private

        def named(key)
          case key
          when 10, 13, "\n", "\r" then :enter
          when 27, "\e" then :escape
          when String then key
          else @names[key]
          end
        end

        def color
          Curses.start_color
          Curses.use_default_colors
          COLORS.each.with_index(1) do |(style, color), number|
            Curses.init_pair(number, Curses.const_get(color), -1)
            @attributes[style] |= Curses.color_pair(number)
          end
        end
      end
    end
  end
end
