# frozen_string_literal: true

module Pando
  # Everything Pando raises on purpose, except RequestTimeout.
  class Error < StandardError
    # @return [Boolean] whether nothing is wrong and the same call may succeed a moment later
    def passing? = false
  end

  # A setting, flag or config file is wrong. The message says where and what to do. CLI exits 2.
  class ConfigError < Error; end

  # The command line is wrong. CLI exits 2.
  class UsageError < Error; end

  # The application could not be booted. CLI exits 1.
  class BootError < Error; end

  # A user's hook raised. Names the hook and the line that defined it. The original error is the `cause`.
  class HookError < Error
    # @return [Symbol, nil] the hook's name
    attr_reader :hook
    # @return [String, nil] `file:line` of its block
    attr_reader :location

    # @param message [String, nil]
    # @param hook [Symbol, nil]
    # @param location [String, nil]
    def initialize(message = nil, hook: nil, location: nil)
      super(message)
      @hook = hook
      @location = location
    end
  end

  # A fork was not made, because a thread is inside Pando.prevent_fork. The message says where.
  class ForkPrevented < Error
    def passing? = true
  end

  # A worker must not become a mold because of the state of its process. The message says why. Another worker may be
  # fit.
  class ForkDeclined < Error; end

  # Raised in the thread that serves a request which outlived its soft timeout. It is not a StandardError, so that
  # `rescue => e` does not swallow it.
  class RequestTimeout < Exception; end # rubocop:disable Lint/InheritException
end
