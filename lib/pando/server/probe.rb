# frozen_string_literal: true

# The monitor executes this, in the folder and with the gems of a new release, to read its configuration.
require "pando/server/probed_release"

Pando::Server::ProbedRelease.tell(ARGV)
