# frozen_string_literal: true

require "pando/compat/blocks"
require "pando/compat/scope"
require "pando/compat/settings"
require "pando/compat/source"
require "pando/compat/statement"
require "pando/config/settings"

module Pando
  module Compat
    # Writes config/pando.rb from a config file of Puma, Unicorn or Pitchfork. The file is read and not run. Each of its
    # lines is in the result: as it was, translated with the original behind it, or as a comment below the reason why it
    # is left out.
    #
    #   Translator.new(File.read("config/puma.rb"), "config/puma.rb").call.text
    #
    # The source is pieces of whole lines (Source), each of them a Statement; Settings and Blocks know what becomes of it,
    # and Scope whether it can be evaluated where Pando reads its configuration.
    #
    # @api private
    class Translator
      # The new file, and how many lines with code were kept, translated and left out.
      Translation = Struct.new(:text, :kept, :translated, :left_out)

      CLAUSES = { if: %w[elsif else], unless: %w[else], case: %w[when in else] }.freeze
      # Where the environment and the number of CPUs are without the libraries that Puma had loaded.
      REWRITTEN = [
        [/\bRails\.env\.local\?/, "%w[development test].include?(ENV.fetch(\"RAILS_ENV\", \"development\"))"],
        [/\bRails\.env\.(\w+)\?/, "(ENV.fetch(\"RAILS_ENV\", \"development\") == \"\\1\")"],
        [/\bRails\.env\b/, "ENV.fetch(\"RAILS_ENV\", \"development\")"],
        [/\bRails\.root\.join\(([^()]*)\)/, "File.join(Dir.pwd, \\1)"],
        [/\bRails\.root\b/, "Dir.pwd"],
        [/\b(?:::)?Concurrent\.(?:physical_processor_count|processor_count|available_processor_count)\b/,
         "Etc.nprocessors"],
        [/\A(\s*)require ["']concurrent(?:-ruby|\/utility\/processor_counter)?["']/, "\\1require \"etc\""]
      ].freeze
      MAGIC = /\A#.*\b(?:frozen_string_literal|(?:en)?coding)\s*:/
      APPLICATION = %r{config/(?:environment|application|boot)\b|\A["'](?:\./|\.\./)*(?:environment|application|boot)(?:\.rb)?["']}
      OWN_PROCESS = "Each of Pando's processes reads this file and has signals and an end of its own: put it into a hook."
      UNFIT = { "trap" => OWN_PROCESS, "at_exit" => OWN_PROCESS, "exit" => OWN_PROCESS }.freeze
      # Settings of Puma whose names mean something else to Pando.
      FALSE_FRIENDS = { "idle_timeout" => "Puma stops a server without requests after this time: Pando serves on." }.freeze
      private_constant :CLAUSES, :REWRITTEN, :MAGIC, :APPLICATION, :OWN_PROCESS, :UNFIT, :FALSE_FRIENDS

      # @param source [String] of the file
      # @param name [String] of the file, as the result's first lines call it
      # @param folder [String] where the file is, from the folder of config/pando.rb: "."
      # @raise [Source::Unreadable] it is no Ruby; the message names the line
      def initialize(source, name, folder: ".")
        @name = name
        @folder = folder
        @originals = source.delete_prefix("\uFEFF").lines.map(&:chomp)
        prepare
        @out = []
        @counts = Hash.new(0)
      end

      # @return [Translation]
      def call
        translate(0, @lines.size - 1)
        text = "#{with_header.join("\n")}\n"
        raise Source::Unreadable, "its translation would be no Ruby" unless Source.statements(text)

        Translation.new(text, *@counts.values_at(:kept, :translated, :left_out))
      end

      private

      def prepare
        Source.pieces(@originals) # or raises
        @lines = rename_variables.map { |line| rewrite(line) }
        @scope = Scope.new(@lines.join("\n")[/\A.*?(?=^__END__$|\z)/m])
        @settings = Settings.new(Config::Settings.file_names.map(&:name), assigned)
        @blocks = Blocks.new(dialect, @scope)
      end

      def dialect = @name.match?(/unicorn|pitchfork/) ? :unicorn : :puma

      def with_header
        header = ["# Written by `pando init` from #{@name}. A line without an equal is a comment, below the reason.",
                  "# docs/coming-from-puma.md has more; `pando --check` looks whether all is right.", ""]
        magic = @out.take_while { |line| MAGIC.match?(line) }
        [*magic, *header, *@out.drop(magic.size)]
      end

      # A local variable that has the name of a setting of Pando's would be taken for a slip.
      def rename_variables
        lines = @originals.map(&:dup)
        tree = Source.statements(@originals.join("\n"))
        found = Source.nodes(tree, :var_ref, :var_field).map { |one| one[1] }.select { |one| Array(one).first == :@ident }
        set = Source.nodes(tree, :var_field).filter_map { |one| one[1][1] if Array(one[1]).first == :@ident }
        names = set & Config::Settings.file_names.map(&:name)
        found.select { |_, name, _| names.include?(name) }.uniq { |one| one[2] }.sort_by { |one| one[2] }.reverse_each do |_, name, (row, column)|
          lines[row - 1] = replace_bytes(lines[row - 1], column, name, "#{name}_value")
        end
        lines
      end

      def replace_bytes(line, column, name, other)
        "#{line.byteslice(0, column)}#{other}#{line.byteslice(column + name.bytesize..)}"
      end

      def rewrite(line)
        return line if line.match?(/\A\s*#/)

        line = REWRITTEN.reduce(line) { |text, (pattern, other)| text.gsub(pattern, other) }
        line.match?(/\A\s*require_relative/) ? line : move(line)
      end

      # The new file may be in another folder.
      def move(line)
        return line if @folder == "."

        line.gsub(/\b__dir__\b/, "File.expand_path(#{@folder.dump}, __dir__)")
            .gsub(/\b__FILE__\b/, "File.expand_path(#{File.join(@folder, File.basename(@name)).dump}, __dir__)")
      end

      # @return [Hash{String => String}] what each local variable is set to
      def assigned
        @lines.filter_map { |line| line.match(/\A\s*(\w+)\s*(?:\|\|)?=\s*([^=~].*?)\s*\z/)&.captures }.to_h
      end

      def translate(from, to)
        Source.pieces(@lines, from, to).each do |piece|
          case piece.kind
          when :comment then @out.concat(@originals[piece.first..piece.last])
          when :data then comment_out(piece, "It follows the end of the program.")
          else code(piece)
          end
        end
      end

      def text(piece) = @lines[piece.first..piece.last].join("\n")

      def code(piece)
        statements = Source.statements(text(piece))
        return several(piece) if statements.size > 1
        return compound(piece) if CLAUSES.key?(statements.first.first) && piece.last > piece.first

        result = translated(text(piece))
        result.left_out? ? leave_out(piece, result.remark) : put(piece, result)
      end

      # @return [Settings::Result]
      def translated(text)
        statement = Statement.new(text)
        name = statement.name
        return whole(statement) if name.nil? || (@scope.own?(name) && !Settings.known?(name))

        reason = UNFIT[name] || (FALSE_FRIENDS[name] if dialect == :puma) || @scope.trouble(statement.condition)
        return Settings::Result.new(nil, reason) if reason

        @blocks.translate(statement) || setting(statement) || feature(statement) || whole(statement)
      end

      def setting(statement)
        result = @settings.translate(statement)
        return result if result.nil? || result.left_out?

        reason = @scope.trouble("[#{statement.arguments.reject { |one| one.match?(/\A\w+:/) }.join(", ")}]")
        reason ? Settings::Result.new(nil, reason) : result
      end

      # What the file loads besides.
      def feature(statement)
        return unless %w[require require_relative].include?(statement.name)

        path = statement.arguments.first.to_s
        return Settings::Result.new(nil, "The monitor never loads the application.") if path.match?(APPLICATION)
        return Settings::Result.new(nil, "It is a part of Puma.") if path.match?(%r{\bpuma\b|puma_|govuk_puma|unicorn})

        reason = @scope.trouble(path)
        return Settings::Result.new(nil, reason) if reason

        @scope.require(path.delete("\"'"))
        Settings::Result.new(moved_require(statement, path))
      end

      def moved_require(statement, path)
        return statement.text if @folder == "." || statement.name == "require"

        "#{statement.indent}require File.expand_path(#{path}, File.expand_path(#{@folder.dump}, __dir__))#{statement.modifier}"
      end

      # A statement that calls no setting.
      def whole(statement)
        return Settings::Result.new(nil, OWN_PROCESS) if statement.text.match?(/\A\s*(?:Signal|Process)\.trap\b/)

        reason = @scope.trouble(statement.text)
        reason ? Settings::Result.new(nil, reason) : Settings::Result.new(statement.text)
      end

      # Several statements in a line.
      def several(piece)
        parts = Source.tokens(text(piece)).slice_when { |one, _| one.kind == :on_semicolon && one.depth.zero? }
        results = parts.map { |part| part.map(&:text).join.sub(/;\s*\z/, "") }.reject { |part| Source.statements(part).to_a.empty? }
                       .map { |part| [part, translated(part)] }
        return put(piece, Settings::Result.new(text(piece))) if results.all? { |part, result| part == result.text }

        comment_out(piece, "Written in lines of their own:")
        results.each { |part, result| add_part(part.strip, result) }
        @counts[:translated] += 1
      end

      def add_part(part, result)
        result.left_out? ? @out.push("# pando: #{result.remark}", "# #{part}") : @out.push(result.text.strip)
        result.left_out? ? @scope.lose(part) : @scope.keep(part)
      end

      # A condition with its branches.
      def compound(piece)
        kind = Source.statements(text(piece)).first.first
        cuts = cuts(piece, CLAUSES.fetch(kind)) or return opaque(piece)
        reason = cuts[0...-1].filter_map { |first, last| head_trouble(first, last) }.first
        return leave_out(piece, reason) if reason

        cuts.each_cons(2) do |(first, last), (following, _)|
          keep_lines(first, last)
          translate(last + 1, following - 1)
        end
        keep_lines(*cuts.last)
      end

      # Written so that it cannot be taken apart by lines.
      def opaque(piece)
        reason = @scope.trouble(text(piece))
        reason ? leave_out(piece, reason) : put(piece, Settings::Result.new(text(piece)))
      end

      # The lines of the head, of each clause and of the end.
      # @return [Array<Array(Integer, Integer)>, nil]
      def cuts(piece, words)
        row = piece.first
        heads = [[row, nil]]
        Source.tokens(text(piece)).each do |token|
          starts = token.kind == :on_kw && token.depth == 1 && words.include?(token.text)
          heads << [row, nil] if starts
          ends = %i[on_nl on_ignored_nl on_comment].include?(token.kind) && token.text.include?("\n") && token.depth == 1
          heads.last[1] ||= row if ends && (token.kind != :on_ignored_nl || alone?(row)) && !blank?(row)
          row += token.text.count("\n")
        end
        heads << [piece.last, piece.last]
        heads if heads.all?(&:last) && fit?(heads)
      end

      def blank?(row) = @lines[row].match?(/\A\s*(?:#.*)?\z/)
      def alone?(row) = @lines[row].match?(/\A\s*(?:else|case|if|unless|elsif|when)?\b.*\z/)

      # Each begins a line, and nothing else is in its lines.
      def fit?(heads)
        heads.each_cons(2).all? { |(first, last), (following, _)| first <= last && last < following } &&
          heads[1...-1].all? { |first, _| @lines[first].match?(/\A\s*(?:elsif|else|when|in)\b/) } &&
          heads[0...-1].none? { |first, last| @lines[first..last].join(" ").match?(/\bthen\s+[^#\s]|\belse\s+[^#\s]/) } &&
          @lines[heads.last.first].match?(/\A\s*end\s*(?:#.*)?\z/)
      end

      def head_trouble(first, last)
        head = @lines[first..last].join("\n").sub(/\A\s*(?:if|unless|elsif|case|when|in|else)\b/, "").sub(/\bthen\s*\z/, "")
        @scope.trouble(@lines[first].match?(/\A\s*when\b/) ? "[#{head}]" : head)
      end

      def keep_lines(first, last)
        (first..last).each { |row| line(@lines[row], @originals[row]) }
      end

      def put(piece, result)
        @scope.keep(text(piece))
        rows = (piece.first..piece.last).to_a
        lines = result.text.lines.map(&:chomp)
        remark(piece, result.remark) if result.remark
        return rows.zip(lines) { |row, line| line(as_it_was(row, line), @originals[row]) } if rows.size == lines.size

        rows.each { |row| @out << commented("was: #{@originals[row].strip}", piece) }
        @out.concat(lines)
        @counts[:translated] += rows.size
      end

      # A comment behind the line stays there.
      def as_it_was(row, line)
        @lines[row].start_with?(line.rstrip) && @lines[row].delete_prefix(line.rstrip).match?(/\A\s*(?:#.*)?\z/) ? @lines[row] : line
      end

      def line(line, original)
        changed = line.strip != original.strip
        @out << (changed ? "#{line} # was: #{original.strip}" : original)
        @counts[changed ? :translated : :kept] += 1 unless original.match?(/\A\s*(?:#.*)?\z/)
      end

      def leave_out(piece, reason)
        @scope.lose(text(piece))
        comment_out(piece, reason)
        @counts[:left_out] += (piece.first..piece.last).count { |row| !@originals[row].strip.empty? }
      end

      def comment_out(piece, reason)
        remark(piece, reason)
        @originals[piece.first..piece.last].each { |line| @out << commented(line.delete_prefix(indent(piece)), piece) }
      end

      def remark(piece, text)
        text = text.sub(/\ALeave it out: (.)/) { Regexp.last_match(1).upcase }
        @out << commented("pando: #{text}", piece)
      end

      def indent(piece) = @originals[piece.first][/\A[ \t]*/]
      def commented(text, piece) = "#{indent(piece)}# #{text}".rstrip
    end
  end
end
