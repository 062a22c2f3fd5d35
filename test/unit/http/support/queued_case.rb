# frozen_string_literal: true

require_relative "fake_reactor"

module HTTPSupport
  # For tests of a worker with a simulated reactor.
  module QueuedCase
    include Events

    HELLO = ->(_env) { [200, { "content-type" => "text/plain" }, ["hello"]] }
    ECHO = lambda do |env|
      input = env["rack.input"]
      first = input.read
      input.rewind
      [200, {}, ["#{env["CONTENT_LENGTH"]} #{input.class} #{first == input.read} #{first[0, 20]}"]]
    end

    def teardown
      @stage&.close
    end

    def stage(app = nil, **settings, &block)
      @stage ||= HTTPSupport::QueuedStage.new(app || block, **settings)
    end

    def reactor = @stage.reactor
    def body(answer) = answer.bytes.split("\r\n\r\n", 2).last
    def head(answer) = answer.bytes.split("\r\n\r\n", 2).first.split("\r\n")
    def connection(answer) = head(answer).grep(/\Aconnection:/)
    def fate(answer) = [connection(answer), answer.keep]
    def served = @stage.worker.called(:job_finished).size
    def kept_and_body(answer) = [answer.keep, body(answer)]
  end
end
