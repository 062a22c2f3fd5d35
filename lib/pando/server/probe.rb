# frozen_string_literal: true

# What the monitor executes, in the folder and with the gems of a new release, to learn what its configuration says.
require "pando/server/probed_release"

Pando::Server::ProbedRelease.tell(ARGV)
