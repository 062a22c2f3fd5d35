# frozen_string_literal: true

require "pando/cli/top/board"

module Pando
  module CLI
    class Top
      # The state of `pando top`: what is selected and shown, what a key does, which command runs. It knows nothing of
      # terminals: keys are characters or Symbols, and the screen is lines of text. Used by Screen, on the main thread.
      class Controls
        HELP = <<~TEXT.lines(chomp: true).freeze
          up, down, j, k   select a process; scroll a stack
          s                sort by the next column: its title has a *
          enter            look into the selected process, and back
          t                where the selected worker stands now: its stack
          p                pause the display; the server goes on
          r                refork: a warm worker becomes the next mold
          R                reload the release that is on disk now
          + -              one worker more or less in the pool of the selected process
          K                kill the selected worker (SIGKILL)
          d                take the server out of the load balancers' rotation, or back into it
          ?                this help
          q                quit
        TEXT
        KEYS = "q quit ? help s sort enter see t stack r refork R reload +- scale K kill p pause"
        # Lines below the board: the note, and the keys.
        BELOW = 2
        # Events that are kept.
        EVENTS = 500
        STEPS = { :up => -1, "k" => -1, :down => 1, "j" => 1, :page_up => -10, :page_down => 10 }.freeze

        # A command that waits for its confirmation.
        Question = Struct.new(:text, :word, :pairs)

        def initialize(feed)
          @feed = feed
          @events = []
          @order = Board::ORDERS.first
          @view = :table
          @targets = {}
        end

        def over? = !!@over

        def receive(messages)
          messages.each do |kind, *facts|
            case kind
            when :status then show(*facts)
            when :gone then gone(facts.first)
            when :event then @events = [*@events, facts].last(EVENTS)
            when :line then @stack << facts.last if facts.first == @command && @word == "stack"
            when :progress, :outcome then note(kind, *facts)
            end
          end
        end

        # @param key [String, Symbol] a character, or :up, :down, :page_up, :page_down, :enter, :escape
        def press(key)
          return answer(key) if @question

          case key
          when "q", :escape then leave(key)
          when "?" then look(:help)
          when :enter then look(:details)
          when "s" then @order = Board::ORDERS[(Board::ORDERS.index(@order) + 1) % Board::ORDERS.size]
          when "p" then pause
          else act(key) if @board
          end
        end

        # @return [Array<Board::Line>] exactly `height` lines at most
        def lines(width, height)
          above = [height - BELOW, 0].max
          body = body(width, above)
          filling = Array.new(above - body.size) { Board::Line.new("") }
          [*body, *filling, status_line, Board::Line.new(KEYS, :dim)].last(height).map do |line|
            Board::Line.new(Board.fit(line.text, width), line.style)
          end
        end

        private

        def body(width, height)
          return HELP.first(height).map { |text| Board::Line.new(text) } if @view == :help
          return [Board::Line.new("waiting for the server's answer")] unless @board
          return details(width, height) if @view == :details
          return stack(width, height) if @view == :stack

          @board.lines(width: width, height: height, order: @order, selected: selected.last["pid"],
                       events: @events.map(&:first))
        end

        # Scrolls as far as the last line.
        def stack(width, height)
          @top = @top.clamp(0, [@stack.size - height, 0].max)
          below = @stack.size - @top - height
          lines = @stack[@top, height].map { |text| Board::Line.new(frame(text, width)) }
          lines[-1] = Board::Line.new("(#{below + 1} more lines: scroll)", :dim) if below.positive? && lines.any?
          lines
        end

        # The end of a line names the file, the line and the method.
        def frame(text, width)
          text = Board.fit(text, nil)
          text.size > width && width > 12 && text.start_with?("  ") ? "    ..#{text[(6 - width)..]}" : text
        end

        def details(width, height)
          role, pairs = selected
          pid = pairs["pid"]
          own = @events.select do |_, facts|
            (pid && facts["pid"] == pid) || (role == "worker" && same_slot?(facts, pairs))
          end
          @board.details(pid, width: width, height: height, events: own.map(&:first))
        end

        def same_slot?(facts, pairs) = facts["slot"] == pairs["slot"] && facts["pool"] == pairs["pool"]

        # What matters most: a question, a server that is gone, a command.
        def status_line
          return Board::Line.new("#{@question.text} (y/n)", :warning) if @question
          return Board::Line.new(@gone, :warning) if @gone

          paused = "[paused] " if @paused
          Board::Line.new("#{paused}#{@note}", @failed ? :warning : nil)
        end

        def show(records, results)
          @gone = nil
          board = Board.new(records, results)
          @latest = board
          return if @paused && @board

          @board = board
        end

        def gone(reason)
          @gone ||= "no server since #{Time.now.strftime("%H:%M:%S")}, trying again each second: #{reason}"
        end

        def pause
          @paused = !@paused
          @board = @latest unless @paused
        end

        def look(view) = @view = @view == view ? :table : view

        def leave(key)
          @over = key == "q" && @view == :table
          @view = :table
        end

        def rows = @board.rows(@order)

        # A process that has ended is replaced by the one that is where it was. One that is only ordered has no pid.
        def selected
          rows = self.rows
          at = (@pid && rows.index { |_, pairs| pairs["pid"] == @pid }) || [@at || 0, rows.size - 1].min
          @at = at
          @pid = rows[at].last["pid"]
          rows[at]
        end

        def move(step)
          selected
          @at = (@at + step).clamp(0, rows.size - 1)
          @pid = rows[@at].last["pid"]
        end

        def act(key)
          case key
          when *STEPS.keys then @view == :stack ? @top += STEPS[key] : move(STEPS[key])
          when "r" then send_command("refork", pool: selected.last["pool"])
          when "R" then ask("Reload the release that is on disk, and replace all workers?", "reload")
          when "+" then scale(1)
          when "-" then scale(-1)
          when "t" then ask_for_stack
          when "K" then ask_to_kill
          when "d" then drain
          end
        end

        def ask(text, word, pairs = {}) = @question = Question.new(text, word, pairs)

        def answer(key)
          question = @question
          @question = nil
          return send_command(question.word, question.pairs) if %w[y Y].include?(key)

          @failed = false
          @note = "#{question.word}: not done"
        end

        # The pid makes sure that no other worker is hit, if this one has been replaced since.
        def ask_to_kill
          role, pairs = selected
          return refuse("only a worker can be killed: select one") unless role == "worker" && pairs["pid"]

          at = ", which is at #{pairs["job"]}" if pairs["job"]
          ask("Kill #{@board.name(role, pairs)} (pid #{pairs["pid"]})#{at}?", "kill",
              pairs.slice("slot", "pool", "pid"))
        end

        # It is not followed: press again.
        def ask_for_stack
          role, pairs = selected
          return refuse("only a worker shows its stack: select one") unless role == "worker" && pairs["pid"]

          @stack = []
          @top = 0
          @view = :stack
          send_command("stack", pairs.slice("slot", "pool", "pid"))
        end

        def drain
          return ask("Put the server back into rotation?", "drain", undo: true) if @latest.draining?

          ask("Take the server out of the load balancers' rotation?", "drain")
        end

        # Each press counts, though the workers of the one before are still starting.
        def scale(step)
          pool, size = @latest.pool_of(selected.last) # the display may be paused
          size = [(@targets[pool] || size) + step, 1].max
          @targets[pool] = size
          send_command("scale", workers: size, pool: pool)
        end

        def send_command(word, pairs = {})
          @command = @feed.command(word, pairs) or return refuse("too many commands are running")
          @word = word
          @failed = false
          @note = "#{word}: sent"
        end

        def refuse(text)
          @failed = true
          @note = text
        end

        # Only the last command's: those before show in the events.
        def note(kind, number, text, succeeded = true) # rubocop:disable Style/OptionalBooleanParameter
          return unless number == @command

          @targets.clear if kind == :outcome
          @failed = !succeeded
          @note = "#{@word}#{" failed" if @failed}: #{text}".delete_suffix(": ")
        end
      end
    end
  end
end
