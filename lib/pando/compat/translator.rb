# frozen_string_literal: true

require "pando/compat/settings"
require "pando/compat/source"
require "pando/compat/prepared_lines"
require "pando/compat/scope"

module Pando
  module Compat
    # Writes config/pando.rb from a config file of Puma, Unicorn or Pitchfork. It parses the file and does not run it.
    # Each line is in the result: unchanged, translated with the original after it, or as a comment below the reason why
    # it is left out.
    #
    # Source cuts the file into pieces of whole lines, each of them a Statement. Settings and Blocks translate it, and
    # Scope decides whether it can be evaluated where Pando reads its configuration.
    class Translator
      # The new file, how many lines with code were kept, translated and left out, and whether one of the latter is
      # Solid Queue's plugin and no other line runs the jobs.
      Translation = Struct.new(:text, :kept, :translated, :left_out, :jobs_left_out)

      # Paths that load the application.
      APPLICATION = %r{config/(?:environment|application|boot)\b|\A["'](?:\.{1,2}/)*(?:environment|application|boot)\b}
      PUMA = /(?<![a-z])(?:puma|unicorn|pitchfork)(?![a-z])/i
      OWN_PROCESS = "Each of Pando's processes reads this file, and has signals and an end of its own: use a hook."
      UNFIT = { "trap" => OWN_PROCESS, "at_exit" => OWN_PROCESS, "exit" => OWN_PROCESS }.freeze
      NO_JOBS = "With its plugin :solid_queue, jobs run only where #{SolidQueue::VARIABLE}=true is set: write " \
                "#{SolidQueue::LINE}, unless bin/jobs runs them elsewhere.".freeze
      APP_CODE = "Code that needs the app goes into a script that runs before the server, or into an initializer of " \
                 "the app."
      ALWAYS = "Pando always has workers, so these lines hold without the block."
      # Settings of Puma that mean something else in Pando.
      FALSE_FRIENDS = { "idle_timeout" => "Puma stops when no request came for so long: Pando does not." }.freeze
      ASSIGNMENT = /\A\s*(\w+)\s*(?:\|\|)?=\s*([^=~].*?)\s*\z/
      private_constant :APPLICATION, :PUMA, :OWN_PROCESS, :UNFIT, :FALSE_FRIENDS, :ASSIGNMENT

      # @param folder [String] of the file, relative to the folder of config/pando.rb: "."
      # @raise [Source::Unreadable] it is not valid Ruby; the message names the line
      def initialize(source, name, folder: ".")
        @name = name
        @folder = folder
        @dialect = name.match?(/unicorn|pitchfork/) ? :unicorn : :puma
        @originals = source.delete_prefix("\uFEFF").lines.map(&:chomp)
        Source.pieces(@originals) # or raises
        prepare(program(@originals))
        @out = Output.new
      end

      def call
        translate(0, @lines.size - 1)
        text = @out.text(header)
        raise Source::Unreadable, "its translation would not be valid Ruby" unless Source.statements(text)

        Translation.new(text, *@out.counts.values_at(:kept, :translated, :left_out),
                        @jobs_left_out && !text.match?(SolidQueue::IN_FILE))
      end

      private

      def translated(text)
        statement = Statement.new(text)
        name = statement.name
        return whole(statement) if name.nil? || (@scope.own?(name) && !Settings.known?(name))

        reason = unfit(name) || @scope.trouble(statement.condition)
        return refused(reason) if reason

        @blocks.translate(statement) || setting(statement) || feature(statement) || whole(statement)
      end

      # The lines before __END__.
      def program(lines) = lines.take_while { |line| line != "__END__" }

      def prepare(program)
        prepared = PreparedLines.new(program, @name, @folder).to_a
        @lines = prepared + @originals.drop(program.size)
        @scope = Scope.new(prepared.join("\n"))
        values = prepared.filter_map { |line| ASSIGNMENT.match(line)&.captures }.to_h
        @settings = Settings.new(values)
        @blocks = Blocks.new(@dialect, @scope)
      end

      def header
        ["# Written by `pando init` from #{@name}. A line without an equal is a comment, below the reason.",
         "# docs/coming-from-puma.md has more; `pando --check` looks whether all is right.", ""]
      end

      def translate(from, to)
        Source.pieces(@lines, from, to).each do |piece|
          case piece.kind
          when :comment then @out.comments(@originals[piece.rows])
          when :data then @out.as_comments(@originals[piece.rows], "It follows the end of the program.")
          else code(piece.rows)
          end
        end
      end

      def text(rows) = @lines[rows].join("\n")

      def code(rows)
        statements = Source.statements(text(rows))
        return several(rows) if statements.size > 1
        return branches(rows) if Branches.of?(statements.first) && rows.size > 1

        statement = Statement.new(text(rows))
        return put(rows, translated(text(rows))) unless cluster?(statement)

        rows.size == 1 ? instead(rows, Source.parts(statement.body)) : cluster(rows)
      end

      # Puma runs the block only if it has workers.
      def cluster?(statement)
        @dialect == :puma && statement.name == "cluster" && statement.body && !statement.modifier
      end

      # The lines of the block. If they cannot be separated from its first and last line, all are left out.
      def cluster(rows)
        first, last = @lines.values_at(rows.begin, rows.end)
        apart = first.match?(/(?:do|\{)\s*(?:#.*)?\z/) && last.match?(/\A\s*(?:end|\})\s*(?:#.*)?\z/)
        return put(rows, refused(Names.hint("cluster"))) unless apart

        @out.left_out([@originals[rows.begin]], ALWAYS)
        translate(rows.begin + 1, rows.end - 1)
        @out.comment(@originals[rows.end])
      end

      def unfit(name) = UNFIT[name] || (FALSE_FRIENDS[name] if @dialect == :puma)

      def refused(reason) = Settings::Result.new(nil, reason)

      def setting(statement)
        result = @settings.translate(statement)
        return result if result.nil? || result.left_out?

        reason = @scope.trouble("[#{statement.arguments.grep_v(/\A\w+:/).join(", ")}]")
        reason ? refused(reason) : result
      end

      # Translates a `require`.
      def feature(statement)
        return unless %w[require require_relative].include?(statement.name)

        path = statement.arguments.first.to_s
        reason = "The monitor never loads the application." if path.match?(APPLICATION)
        reason ||= "It is a part of the server that this file was written for." if path.match?(PUMA)
        reason ||= @scope.trouble(path)
        return refused(reason) if reason

        @scope.require(path.delete("\"'"))
        Settings::Result.new(moved(statement, path))
      end

      def moved(statement, path)
        return statement.text if @folder == "." || statement.name == "require"

        folder = "File.expand_path(#{@folder.dump}, __dir__)"
        "#{statement.indent}require File.expand_path(#{path}, #{folder})#{statement.modifier}"
      end

      # Keeps or refuses a statement that calls no setting.
      def whole(statement)
        return refused(OWN_PROCESS) if statement.text.match?(/\A\s*(?:Signal|Process)\.trap\b/)

        reason = @scope.trouble(statement.text)
        reason = "#{reason} #{APP_CODE}" if reason&.include?(Scope::NOT_LOADED) && statement.call_of_constant?
        reason ? refused(reason) : Settings::Result.new(statement.text)
      end

      # Several statements on one line.
      def several(rows)
        parts = Source.parts(text(rows))
        return put(rows, Settings::Result.new(text(rows))) if parts.all? { |part| translated(part).text == part }

        instead(rows, parts)
      end

      def instead(rows, parts)
        indent = @lines[rows.begin][/\A\s*/]
        lines = parts.flat_map { |part| lines_of(part, translated(part)) }.map { |line| "#{indent}#{line}" }
        @out.instead(lines, @originals[rows])
      end

      def lines_of(part, result)
        result.left_out? ? @scope.lose(part) : @scope.keep(part)
        result.left_out? ? ["# pando: #{reason(part, result)}", "# #{part.strip}"] : [result.text.strip]
      end

      # A condition with its branches. If they cannot be separated by lines, the condition is translated as a whole.
      def branches(rows)
        branches = Branches.new(@lines[rows])
        heads = branches.heads or return put(rows, whole(Statement.new(text(rows))))
        reason = heads[0...-1].filter_map { |head| @scope.trouble(branches.question(head)) }.first
        return put(rows, refused(reason)) if reason

        part(rows.begin, heads)
      end

      def part(first, heads)
        heads.each_cons(2) do |head, following|
          head.each { |row| keep(first + row) }
          translate(first + head.end + 1, first + following.begin - 1)
        end
        keep(first + heads.last.end)
      end

      def keep(row) = @out.line(@lines[row], @originals[row])

      def put(rows, result)
        return leave_out(rows, result) if result.left_out?

        @scope.keep(text(rows))
        @out.remark(@originals[rows], result.remark) if result.remark
        lines = result.text.lines.map(&:chomp)
        return @out.instead(lines, @originals[rows]) unless lines.size == rows.size

        rows.zip(lines) { |row, line| put_line(row, line) }
      end

      def put_line(row, line)
        return @out.comment(@originals[row]) if line.strip == "# #{@lines[row].strip}"

        @out.line(same?(line, row) ? @lines[row] : line, @originals[row])
      end

      def leave_out(rows, result)
        @scope.lose(text(rows))
        @out.left_out(@originals[rows], reason(text(rows), result))
      end

      # Why this is left out, and what to write for the jobs that it would have run.
      def reason(text, result)
        return result.remark if result.remark == Settings::FOLLOWED || !text.match?(SolidQueue::PLUGIN)

        @jobs_left_out = true
        "#{result.remark} #{NO_JOBS}"
      end

      # Whether the lines are the same except for a comment at the end.
      def same?(line, row)
        @lines[row].start_with?(line.rstrip) && @lines[row].delete_prefix(line.rstrip).match?(/\A\s*(?:#.*)?\z/)
      end
    end

    # Builds the lines of the new file.
    class Output
      MAGIC = /\A#.*\b(?:frozen_string_literal|(?:en)?coding)\s*:/
      BLANK = /\A\s*(?:#.*)?\z/
      private_constant :MAGIC, :BLANK

      # @return [Hash{Symbol => Integer}] lines with code that were kept, translated and left out
      attr_reader :counts

      def initialize
        @lines = []
        @counts = { kept: 0, translated: 0, left_out: 0 }
      end

      def text(header)
        magic = @lines.take_while { |line| MAGIC.match?(line) }
        "#{[*magic, *header, *@lines.drop(magic.size)].join("\n")}\n"
      end

      def comments(lines) = @lines.concat(lines)

      # A line that is unchanged, or is followed by the original as a comment.
      def line(line, original)
        changed = line.strip != original.strip
        @lines << (changed ? "#{line} # was: #{original.strip}" : original)
        @counts[changed ? :translated : :kept] += 1 unless original.match?(BLANK)
      end

      # Replaces the original lines with other ones.
      def instead(lines, originals)
        originals.each { |original| @lines << "#{indent(originals)}# was: #{original.strip}" }
        @lines.concat(lines)
        @counts[:translated] += originals.size
      end

      def left_out(originals, reason)
        as_comments(originals, reason)
        @counts[:left_out] += originals.count { |line| !line.strip.empty? }
      end

      # A further line of what was left out.
      def comment(original)
        @lines << "#{indent([original])}# #{original.strip}"
        @counts[:left_out] += 1
      end

      def as_comments(originals, reason)
        remark(originals, reason)
        originals.each { |line| @lines << "#{indent(originals)}# #{line.delete_prefix(indent(originals))}".rstrip }
      end

      # Puts a comment above the translation of these lines.
      def remark(originals, text)
        text = text.sub(/\ALeave it out: (.)/) { Regexp.last_match(1).upcase }
        @lines << "#{indent(originals)}# pando: #{text}"
      end

      private

      def indent(originals) = originals.first[/\A[ \t]*/]
    end
  end
end
