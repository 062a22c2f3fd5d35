# frozen_string_literal: true

require "pando/compat/names"
require "pando/compat/source"
require "pando/compat/settings"

module Pando
  module Compat
    # Whether an expression of another server's config file can be evaluated in config/pando.rb. The monitor reads that
    # file. It never loads the application, and has no objects of Puma or Unicorn.
    #
    # There is one Scope per translated file. It remembers which lines were left out.
    class Scope
      # Constants of the standard library that a config file may use, in addition to Ruby's core.
      LIBRARY = %w[Benchmark Bundler CSV Date DateTime Digest ERB Etc FileUtils IPAddr JSON Logger Net Open3 OpenSSL
                   OptionParser Pathname PP SecureRandom Set Shellwords Socket StringIO Tempfile Time Timeout Tmpdir
                   URI YAML].freeze
      # Features of the standard library and of Bundler: requiring them defines no unknown constants.
      FEATURES = /\A(?:#{[*LIBRARY, "English", "optparse", "rbconfig"].join("|")})\b/i
      # Constants that only the application loads, whatever else the file requires.
      APPLICATION = %w[ActionCable ActiveJob ActiveRecord ActiveSupport Puma PumaWorkerKiller Rails Unicorn
                       Pitchfork].freeze

      NOT_LOADED = "is not loaded when Pando reads its configuration"

      def initialize(source)
        tree = Source.statements(source)
        set = Source.nodes(tree, :var_field, :mlhs)
        @locals = names(set, :@ident)
        @constants = names(set, :@const) + names(Source.nodes(tree, :class, :module).map { |one| one[1] }, :@const)
        @methods = methods_in(tree)
        @required = []
        @lost = {}
      end

      def require(feature) = (@required << feature unless FEATURES.match?(feature))

      # @param text [String] a statement that was left out: whatever it sets and defines is missing from then on
      def lose(text)
        tree = Source.statements(text) or return
        lost = names(Source.nodes(tree, :var_field), :@ident, :@const) + methods_in(tree)
        lost.each { |name| @lost[name] = true }
      end

      # @param text [String] a statement that was kept: it sets and defines its names again
      def keep(text)
        names(Source.nodes(Source.statements(text), :var_field), :@ident, :@const).each { |name| @lost.delete(name) }
      end

      def own?(name) = @locals.include?(name) || @methods.include?(name)

      # @param text [String, nil] an expression or a statement
      # @return [String, nil] why it cannot be evaluated; nil: it can be
      def trouble(text)
        return if text.nil? || text.strip.empty?

        tokens = Source.tokens(text).reject { |one| one.kind == :on_sp }
        state(tokens) || constants(tokens) || calls(text)
      end

      private

      def names(tree, *kinds) = Source.nodes(tree, *kinds).map { |one| one[1] }
      def methods_in(tree) = Source.nodes(tree, :def).map { |one| one[1][1] }

      def state(tokens)
        if (found = tokens.find { |one| one.kind == :on_ivar })
          "#{found.text} is a variable of the server that this file was written for."
        elsif tokens.each_cons(2).any? do |before, one|
          one.text == "self" && one.kind == :on_kw && before.text != "def"
        end
          "It hands over the configuration of the server that this file was written for."
        end
      end

      def constants(tokens)
        unknown = tokens.each_index.find do |at|
          tokens[at].kind == :on_const && outermost?(tokens, at) && !known?(tokens[at].text)
        end
        return unless unknown

        "#{tokens[unknown].text} #{NOT_LOADED}: ask ENV or a file instead."
      end

      # Whether it is the Foo in Foo::Bar or ::Foo.
      def outermost?(tokens, at)
        before = tokens[at - 1] if at.positive?
        return before&.kind != :on_symbeg unless before && %w[:: . &.].include?(before.text)

        before.text == "::" && (at == 1 || !%i[on_const on_ident on_rparen on_rbracket].include?(tokens[at - 2].kind))
      end

      def known?(name)
        return !@lost[name] if @constants.include?(name)
        return true if LIBRARY.include?(name) || (ruby?(name) && !APPLICATION.include?(name))

        APPLICATION.include?(name) ? required?(name) : @required.any?
      end

      # Whether the constant is Ruby's own.
      def ruby?(name) = Object.const_defined?(name) && !%w[Gem Pando].include?(name)

      # ActiveSupport is required by "active_support/core_ext".
      def required?(name)
        feature = name.gsub(/(?<=[a-z])[A-Z]/) { |letter| "_#{letter}" }.downcase
        @required.any? { |one| one == feature || one.start_with?("#{feature}/") }
      end

      def calls(text)
        tree = Source.statements(text) || Source.statements("[#{text}]") or return
        called = called(tree)
        lost = (called + names(Source.nodes(tree, :var_ref), :@ident)).find { |name| @lost[name] }
        return "#{lost} is missing: see the line above that was left out." if lost

        unknown = called.find { |name| !own?(name) && !ruby_method?(name) }
        unknown && explain(unknown)
      end

      def called(tree)
        leaves = Source.nodes(tree, :vcall, :fcall, :command).reject { |one| question?(one) }.map { |one| one[1] }
        leaves.filter_map { |kind, name| name if kind == :@ident }
      end

      # Whether it is `environment` without a value, which sets nothing.
      def question?(node) = node.first == :vcall && node[1][1] == "environment"

      def explain(name)
        return "#{name} is a setting within another statement: write it in a line of its own." if Settings.known?(name)

        "#{name} is no setting that Pando knows, and no method of Ruby's."
      end

      def ruby_method?(name) = Kernel.private_method_defined?(name) || Kernel.method_defined?(name)
    end
  end
end
