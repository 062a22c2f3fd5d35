# frozen_string_literal: true

require "pando/fork_safety"
require "pando/testing/settings"
require "pando/testing/session"

module Pando
  # Reforks a test suite as the server reforks an app, so that CI finds what would break in production.
  # Lives in the process that runs the tests. A plug connects it to a test framework.
  #
  #   Pando::Testing.configure { |testing| testing.every = 50 }
  #
  # Public are the methods below and {Settings}; all else in Testing is internal.
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

      # Called by a plug, before the app is loaded.
      #
      # @api private
      def begin
        ForkSafety::Audit.begin
        ForkSafety::Audit.trace
        ForkSafety::Libraries.prepare_environment
        Strict.install if settings.strict
      end

      # @api private
      # @return [Session] the session of this run; each generation has a copy
      def session = @session ||= Session.new(settings)

      # @api private
      # @return [Hooks] the hooks of the app's config file
      def hooks = @hooks ||= Hooks.load(settings.config_file)

      # @return [Integer] how often this run has reforked so far
      def generation = session.generation

      # Names IOs that the suite itself holds through all generations (a browser's connection, a report), so
      # that strict mode does not attribute them to the app.
      #
      # @param ios [Array<IO, #to_io>]
      # @return [nil]
      def keep(*ios) = Pando.keep_io(*ios)
    end
  end
end
