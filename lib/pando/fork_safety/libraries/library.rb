# frozen_string_literal: true

require "pando/fork_safety/libraries/declaration"
require "pando/fork_safety/libraries/rule"

module Pando
  module ForkSafety
    module Libraries
      # One row of the table: how to recognize a library, a rule for each range of its versions, and the blocks to
      # run around a fork. Declared in known/*.rb (see {Declaration}) and constant afterwards.
      #
      # @api private
      class Library
        # A first call that makes a process unsafe to fork.
        Mark = Struct.new(:constant, :method_name, :singleton, :before, :reason, keyword_init: true)

        attr_reader :name, :constant, :rules

        # @param name [String] the gem's
        # @param constant [String] defined once the library is loaded
        # @param tested [Boolean] whether a test runs the real gem
        # @yield the declaration, see {Declaration}
        def initialize(name, constant, tested: false, &block)
          @name = name
          @tested = tested
          @constant = constant
          declaration = Declaration.new(&block)
          @rules = declaration.rules
          @marks = declaration.marks
          @steps = declaration.steps
          @threads = declaration.thread_names
          @unsafe_threads = declaration.unsafe_threads
          @revived_threads = declaration.revived_threads
          @revived_since = declaration.revived_since
          @queues = declaration.queued
        end

        # @return [Boolean] whether this process has loaded it
        def loaded? = !Constants.find(constant).nil?

        # @return [Boolean] whether at least its outermost module is loaded: Rails autoloads ActiveRecord::Base
        def begun? = !Constants.find(constant[/\A\w+/]).nil?

        # @return [Gem::Version, nil]
        def version
          specification = Gem.loaded_specs[name]
          return specification.version if specification

          text = Constants.version_near(constant)
          Gem::Version.new(text) if text && Gem::Version.correct?(text)
        end

        # @return [Rule, nil] the first rule that applies
        def rule(version = self.version) = @rules.find { |rule| rule.holds?(version) }

        # @return [Array<Mark>] those of the loaded version
        def marks
          version = self.version
          @marks.select { |mark| mark.before.nil? || version.nil? || version.release < Gem::Version.new(mark.before) }
        end

        # @return [Boolean] whether a test runs the real gem
        def tested? = @tested

        # @param name [Symbol] before_fork, in_parent, in_child, say_goodbye, before_exit or watch
        # @return [Proc, nil]
        def step(name) = @steps[name]

        # @param name [Symbol] count, names or flush
        # @return [#call, nil]
        def queue(name) = @queues[name]

        # @return [Boolean] whether there is something to run around a fork
        def handled? = @steps.any? && %i[handled limits_reforking].include?(rule&.verdict)

        # @param comm [String] a native thread's name
        def thread?(comm) = @threads ? @threads.match?(comm) : false

        # @param location [String] "file:line" of a Ruby thread's block
        # @return [Boolean] whether that thread belongs to the library and comes back in each child
        def revives?(location)
          return false unless @revived_threads&.match?(location)

          version = self.version
          @revived_since.nil? || version.nil? || version.release >= @revived_since
        end

        # @return [Boolean] whether none of its threads may be alive at a fork
        def unsafe_threads? = @unsafe_threads
      end
    end
  end
end
