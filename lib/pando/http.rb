# frozen_string_literal: true

require "pando/errors"
require "pando/native"

module Pando
  # The HTTP/1.x half of a worker: takes connections from the listeners, reads
  # one request of each, calls the Rack application, sends its answer. Loaded in
  # molds and workers only; the monitor never needs it.
  #
  # Entry points are {HTTP::ReactorHandler} (behind the reactor) and {HTTP::DirectHandler} (direct
  # mode), what a Cluster::Worker is given to do.
  module HTTP
  end
end

require "pando/http/reactor_handler"
require "pando/http/rackup"
require "pando/http/rehearsal"
require "pando/http/direct_handler"
