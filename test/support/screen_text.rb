# frozen_string_literal: true

module Support
  # What stands on the screen of a terminal (xterm) that was sent these bytes: a program sends only what changes, and
  # moves the cursor in between.
  class ScreenText
    TOKEN = /\e\[([?>\d;]*)([a-zA-Z@])|\e[()].|\e[=>78]|\e\].*?\a|([\x08\r\n])|([\x20-\x7e])/n

    # @param bytes [String]
    # @return [Array<String>] its lines, without spaces at their ends
    def self.of(bytes) = new.feed(bytes).lines

    def initialize
      clear
    end

    def lines = @cells.keys.sort.map { |row| @cells[row].map { |cell| cell || " " }.join.rstrip }

    def feed(bytes)
      bytes.b.scan(TOKEN) do |arguments, command, control, character|
        if command then obey(command, arguments.split(";").map(&:to_i)) unless arguments.start_with?("?", ">")
        elsif control then move(control)
        elsif character then put(character)
        end
      end
      self
    end

    private

    def clear
      @cells = Hash.new { |rows, at| rows[at] = [] }
      @row = @column = 0
    end

    def put(character)
      @cells[@row][@column] = @last = character
      @cells[@row].map! { |cell| cell || " " }
      @column += 1
    end

    def move(control)
      case control
      when "\r" then @column = 0
      when "\n" then @row += 1
      else @column = [@column - 1, 0].max
      end
    end

    def obey(command, arguments)
      first = [arguments.first.to_i, 1].max
      case command
      when "H"
        @row = first - 1
        @column = [arguments[1].to_i, 1].max - 1
      when "d" then @row = first - 1
      when "G" then @column = first - 1
      when "A" then @row -= first
      when "B" then @row += first
      when "C" then @column += first
      when "D" then @column -= first
      when "J" then erase(arguments.first.to_i)
      when "K" then arguments.first.to_i == 1 ? @cells[@row].fill(" ", 0, @column + 1) : erase_line
      when "X" then @cells[@row].fill(" ", @column, first)
      when "b" then first.times { put(@last) }
      when "P" then @cells[@row].slice!(@column, first)
      when "@" then @cells[@row].insert(@column, *[" "] * first)
      end
    end

    def erase(how)
      return @cells.clear if how == 2

      @cells.delete_if { |row, _| row > @row }
      erase_line
    end

    def erase_line = @cells[@row] = @cells[@row].first(@column)
  end
end
