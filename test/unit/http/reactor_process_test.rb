# frozen_string_literal: true

require "test_helper"
require_relative "support/reactor_process"
require "tempfile"

# Pando::HTTP::Reactor.fork: the reactor as a fork of the monitor.
class HTTPReactorProcessTest < Minitest::Test
  include HTTPSupport::ReactorProcess

  private

  def launch(*arguments) = Reactor.fork(*arguments)
end
