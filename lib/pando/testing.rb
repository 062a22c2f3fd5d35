# frozen_string_literal: true

require "pando/sys"
require "pando/fork_safety"
require "pando/fork_safety/finding"
require "pando/testing/settings"
require "pando/testing/session"

module Pando
  # Reforks a test suite as the server reforks an app, so that CI meets what production would.
  # Lives in the process that runs the tests; what joins it to a framework is a plug.
  #
  #   Pando::Testing.configure { |testing| testing.every = 50 }
  module Testing
    class << self
      # @yieldparam settings [Settings]
      # @return [Settings]
      def configure
        yield settings if block_given?
        Strict.install if settings.strict
        settings
      end

      # @return [Settings]
      def settings = @settings ||= Settings.from(ENV)

      # @api private
      # @return [Session] the one of this run: its copy, in each generation
      def session = @session ||= Session.new(settings)

      # @api private
      # @return [Hooks] those of the app's config file
      def hooks = @hooks ||= Hooks.load(settings.config_file)

      # @return [Integer] how often this run has reforked up to here
      def generation = session.generation

      # Names IOs that the suite itself holds through all generations (a browser's connection, a
      # report), so that strict mode does not take them for the app's.
      #
      # @param ios [Array<IO, #to_io>]
      # @return [nil]
      def keep(*ios) = Pando.keep_io(*ios)
    end
  end
end
