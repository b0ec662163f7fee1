from tests.kit.kubernetes.load_job import read_manifests


def test_the_cron_job_of_the_page_has_its_job() -> None:
    """What tests/cluster shows of the Jobs of one, it shows of the other."""
    found = {each["kind"]: each for each in read_manifests()}
    assert found["CronJob"]["spec"]["jobTemplate"]["spec"] == found["Job"]["spec"]
