# frozen_string_literal: true

require "pando/compat/solid_queue"
require "pando/compat/source"
require "pando/config/settings"

module Pando
  module Compat
    # The lines of a config file, rewritten so that they no longer need libraries that Puma had loaded. The number of
    # lines stays the same.
    class PreparedLines
      RAILS_ENV = /(?<![\w:.])(?:::)?Rails\.env\b/
      # Rails' own question for the environment. Where only a flag or RACK_ENV names it, the variable does not.
      IN_RAILS = /\bENV\.fetch\(["']RAILS_ENV["'](?:, *["']development["']\)|\) *\{ *["']development["'] *\})/
      # Replacements for expressions that ask for the Rails environment, the root folder or the number of CPUs.
      # `environment` without a value is what Pando sets RAILS_ENV to.
      REWRITTEN = [
        [/#{RAILS_ENV}\.local\?/, "%w[development test].include?(environment)"],
        [/#{RAILS_ENV}\.in\?\(([^()]*)\)/, "(\\1).include?(environment)"],
        [/#{RAILS_ENV}\.(\w+)\?(?!\()/, "(environment == \"\\1\")"],
        [/#{RAILS_ENV}|#{IN_RAILS}/, "environment"],
        [/\bRails\.root\.join\(([^()]*)\)/, "File.join(Dir.pwd, \\1)"],
        [/\bRails\.root\b/, "Dir.pwd"],
        [/\b(?:::)?Concurrent\.(?:physical_processor_count|processor_count|available_processor_count)\b/,
         "Etc.nprocessors"],
        [/\A(\s*)if ENV\[["']#{SolidQueue::VARIABLE}["']\]\s*\z/, "\\1if #{SolidQueue::QUESTION}"],
        [%r{\A(\s*)require ["']concurrent(?:-ruby|/utility/processor_counter)?["']}, "\\1require \"etc\""]
      ].freeze
      private_constant :RAILS_ENV, :IN_RAILS, :REWRITTEN

      # @param folder [String] of the file, relative to the new file
      def initialize(lines, name, folder)
        @lines = lines
        @name = name
        @folder = folder
      end

      def to_a
        renamed.map.with_index { |line, row| line.match?(/\A\s*#/) || within_text.include?(row) ? line : rewrite(line) }
      end

      private

      # The rows that end within a string, where a comment cannot follow.
      def within_text
        @within_text ||= Ripper.lex(@lines.join("\n")).flat_map do |(row, _), kind, token|
          kind == :on_tstring_content ? ((row - 1)...(row - 1 + token.count("\n"))).to_a : []
        end
      end

      # Renames local variables that have the name of a Pando setting: Pando would report such an assignment as a
      # mistake.
      def renamed
        lines = @lines.map(&:dup)
        mentions = idents(:var_ref, :var_field).select { |_, name, _| taken.include?(name) }.map { |_, *rest| rest }
        mentions.uniq.sort_by(&:last).reverse_each do |name, (row, column)|
          line = lines[row - 1]
          behind = line.byteslice((column + name.bytesize)..)
          lines[row - 1] = "#{line.byteslice(0, column)}#{name}_value#{behind}"
        end
        lines
      end

      def taken
        @taken ||= idents(:var_field).map { |_, name, _| name } & Config::Settings.file_names.map(&:name)
      end

      def idents(*kinds)
        @tree ||= Source.statements(@lines.join("\n"))
        Source.nodes(@tree, *kinds).filter_map { |one| one[1] if one[1].is_a?(Array) && one[1].first == :@ident }
      end

      def rewrite(line)
        line = REWRITTEN.reduce(line) { |text, (pattern, other)| text.gsub(pattern, other) }
        @folder == "." || line.match?(/\A\s*require_relative/) ? line : move(line)
      end

      def move(line)
        file = File.join(@folder, File.basename(@name))
        line.gsub(/\b__dir__\b/, "File.expand_path(#{@folder.dump}, __dir__)")
            .gsub(/\b__FILE__\b/, "File.expand_path(#{file.dump}, __dir__)")
      end
    end
  end
end
